/** The admin port: health, metrics and state; loopback unless told otherwise (design section 6 and 12). The home of fastify. */
import { STATUS_CODES } from 'node:http'
import { type FastifyError, type FastifyReply, fastify } from 'fastify'
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
    // A path that cannot be decoded never reaches a route.
    frameworkErrors: (error, _request, reply: FastifyReply) => refuse(reply, error),
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get('/livez', async () => ({ status: 'alive' }))
  app.get('/readyz', async (_request, reply) => {
    const { readiness } = health
    if (readiness.ready) return { status: 'ready' }
    return send(reply, 503, `Not ready, ${readiness.reason}.`)
  })
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  app.get('/state', async () => state())

  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.url.split('?')
    const status = PATHS.includes(path) ? 405 : 404
    if (status === 405) reply.header('allow', 'GET, HEAD')
    const detail =
      status === 405 ? 'This resource is only read: use GET.' : `Known here: ${PATHS.join(', ')}.`
    send(reply, status, detail)
  })
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if ((error.statusCode ?? 500) >= 500) log.error({ err: error }, 'admin request failed')
    refuse(reply, error)
  })

  await app.listen({ host, port })
  const address = app.server.address()
  if (address === null || typeof address === 'string')
    throw new TypeError('The admin port has no TCP address.')
  return { host: address.address, port: address.port, close: async () => app.close() }
}

const PATHS = ['/livez', '/readyz', '/metrics', '/state']

/** What went wrong inside stays in the log. */
function refuse(reply: FastifyReply, { statusCode = 500, message }: FastifyError): void {
  send(reply, statusCode, statusCode >= 500 ? 'The log says why.' : message)
}

/** Problem details (RFC 9457) of a status that says it all. */
function send(reply: FastifyReply, status: number, detail: string): FastifyReply {
  const body = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail }
  return reply.code(status).type('application/problem+json').send(body)
}
