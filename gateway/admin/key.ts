/** The key of the admin port: asked for by everything that does not say it is open. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
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
 * A hook that answers 401 to requests without the key; every request has it when `key` is empty. Compares digests in constant
 * time, so neither the key nor its length can be found out by trying.
 */
export function keyGuard(key: string): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  const wanted = digest(key)
  return async (request, reply) => {
    if (key === '' || request.routeOptions.config.open) return undefined
    const [, given = ''] = /^(?:Bearer|Api-Key) +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    if (timingSafeEqual(digest(given), wanted)) return undefined
    reply.header('www-authenticate', 'Bearer realm="sluice admin"')
    return sendProblem(reply, 401, 'Send the key of the admin port: "Authorization: Bearer KEY".')
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
