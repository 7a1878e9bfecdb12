/** The admin port: health, metrics and state; loopback unless told otherwise (design section 6 and 12). The home of fastify. */
import { STATUS_CODES } from 'node:http'
import { fastify } from 'fastify'
import type { Log } from '../types.js'

export interface AdminOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly health: {
    readonly readiness: { readonly ready: true } | { readonly ready: false; readonly reason: string }
  }
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  /** What is in force: policy revision and files. */
  state(): object
  readonly log: Log
}

export interface Admin {
  readonly host: string
  readonly port: number
  /** Stops listening and ends every connection. */
  close(): Promise<void>
}

const PATIENCE_MS = 10_000
const MAX_BODY_BYTES = 1024

/** Starts listening; rejects when the address cannot be taken. */
export async function startAdmin({ host, port, health, metrics, state, log }: AdminOptions): Promise<Admin> {
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: PATIENCE_MS,
    connectionTimeout: PATIENCE_MS,
    forceCloseConnections: true,
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get('/livez', async () => ({ status: 'alive' }))
  app.get('/readyz', async (_request, reply) => {
    const { readiness } = health
    if (readiness.ready) return { status: 'ready' }
    return reply
      .code(503)
      .type(PROBLEM)
      .send(problem(503, `Not ready, ${readiness.reason}.`))
  })
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  app.get('/state', async () => state())

  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.url.split('?')
    const status = PATHS.includes(path) ? 405 : 404
    if (status === 405) reply.header('allow', 'GET, HEAD')
    const detail =
      status === 405 ? 'This resource is only read: use GET.' : `Known here: ${PATHS.join(', ')}.`
    reply.code(status).type(PROBLEM).send(problem(status, detail))
  })
  app.setErrorHandler((error: { statusCode?: number; message: string }, _request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) log.error({ err: error }, 'admin request failed')
    const detail = status >= 500 ? 'The log says why.' : error.message
    reply.code(status).type(PROBLEM).send(problem(status, detail))
  })

  await app.listen({ host, port })
  const address = app.server.address()
  if (address === null || typeof address === 'string')
    throw new TypeError('The admin port has no TCP address.')
  return { host: address.address, port: address.port, close: async () => app.close() }
}

const PATHS = ['/livez', '/readyz', '/metrics', '/state']
const PROBLEM = 'application/problem+json'

/** Problem details (RFC 9457) of a status that says it all. */
function problem(status: number, detail: string): object {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail }
}
