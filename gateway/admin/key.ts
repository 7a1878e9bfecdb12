/**
 * The key of the admin port: asked for by everything that does not say it is open. Wrong keys are throttled. The home of
 * rate-limiter-flexible.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { sendProblem } from './problem.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs no key: it tells nothing, and changes nothing. */
    open?: true
  }
}

/** Marks a route that needs no key. */
export const OPEN = { config: { open: true } } as const

/**
 * Without a key the port listens on loopback only. A page of another site can reach it there by a name that it lets lead to
 * 127.0.0.1 (DNS rebinding): such a request names that site as its Host, and what is meant for this port never does.
 */
function isMeantForLoopback(request: FastifyRequest): boolean {
  const name = request.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0
}

/** Wrong keys that one address may send in a minute. */
const MOST_WRONG = 20

/**
 * A hook that answers 401 to requests without the key; when `key` is empty, none is asked for. Compares digests in constant
 * time, so neither the key nor its length can be found out by trying. An address that has sent too many wrong ones gets 429
 * for the rest of a minute, unless it sends the right one: nobody can lock another out.
 */
export function keyGuard(key: string): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  const wanted = digest(key)
  const wrong = new RateLimiterMemory({ points: MOST_WRONG, duration: 60 })
  return async (request, reply) => {
    if (request.routeOptions.config.open) return undefined
    if (key === '') {
      if (isMeantForLoopback(request)) return undefined
      return sendProblem(
        reply,
        421,
        'Without a key this port answers to "localhost" and to IP addresses only.',
      )
    }
    const [, given = ''] = /^(?:Bearer|Api-Key) +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    if (timingSafeEqual(digest(given), wanted)) return undefined
    const { consumedPoints, msBeforeNext } = await wrong.penalty(request.ip)
    if (consumedPoints > MOST_WRONG) {
      reply.header('retry-after', Math.ceil(msBeforeNext / 1000))
      return sendProblem(
        reply,
        429,
        'Too many wrong keys came from this address. Wait, then send the right one.',
      )
    }
    reply.header('www-authenticate', 'Bearer realm="sluice admin"')
    return sendProblem(reply, 401, 'Send the key of the admin port: "Authorization: Bearer KEY".')
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
