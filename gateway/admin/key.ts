/** The key of the admin port, which every route needs that is not marked as open. Wrong keys are throttled. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from './problem.js'
import type { WrongKeys } from './wrong-keys.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs no key, because it reveals and changes nothing. */
    open?: true
  }
}

/** Marks a route that needs no key. */
export const OPEN = { config: { open: true } } as const

/**
 * Without a key the port listens on loopback only. A page of another site could still reach it through a name
 * that resolves to 127.0.0.1 (DNS rebinding). Such a request has that site as its Host, so only local names are
 * accepted.
 */
function isMeantForLoopback(request: FastifyRequest): boolean {
  const name = request.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0
}

/**
 * A hook that answers 401 to requests without the key; when `key` is empty, none is required. Compares digests in
 * constant time, so neither the key nor its length can be found out by trying. A client that has sent too many wrong
 * keys gets 429 for the rest of a minute, but the right key still works: nobody can lock another out.
 */
export function keyGuard(
  key: string,
  wrongKeys: WrongKeys,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  const wanted = digest(key)
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
    const { authorization = '' } = request.headers
    const [, given = ''] = /^(?:Bearer|Api-Key) +(\S+)$/i.exec(authorization) ?? []
    if (timingSafeEqual(digest(given), wanted)) return undefined
    // A request without a key does not count as a wrong guess.
    const wait = authorization === '' ? undefined : await wrongKeys.sent('admin', request.ip, authorization)
    if (wait !== undefined) {
      reply.header('retry-after', wait)
      return sendProblem(reply, 429, 'Too many wrong keys were sent. Wait, then send the right one.')
    }
    reply.header('www-authenticate', 'Bearer realm="sluice admin"')
    return sendProblem(reply, 401, 'Send the key of the admin port: "Authorization: Bearer KEY".')
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
