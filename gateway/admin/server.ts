/** The admin port: health, metrics and state; loopback unless told otherwise (design section 6 and 12). The home of fastify. */
import { type FastifyError, type FastifyReply, fastify } from 'fastify'
import type { Log } from '../types.js'
import { type Asked, explainRoute } from './explain.js'
import { sendError, sendProblem } from './problem.js'
import { type ReloadResult, reloadRoute } from './reload.js'

export interface AdminOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly health: {
    readonly readiness: { readonly ready: true } | { readonly ready: false; readonly reason: string }
  }
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  /** What is in force, and how the last reload ended. */
  state(): object
  /** Reads the configuration anew; never rejects. */
  reload(): Promise<ReloadResult>
  /** What would become of a request; counters stay as they are. */
  explain(asked: Asked): Promise<object>
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
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const { host, port, health, metrics, state, reload, explain, log } = options
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: PATIENCE_MS,
    connectionTimeout: PATIENCE_MS,
    forceCloseConnections: true,
    // A path that cannot be decoded never reaches a route.
    frameworkErrors: (error, _request, reply: FastifyReply) => sendError(reply, error),
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get('/livez', async () => ({ status: 'alive' }))
  app.get('/readyz', async (_request, reply) => {
    const { readiness } = health
    if (readiness.ready) return { status: 'ready' }
    return sendProblem(reply, 503, `Not ready, ${readiness.reason}.`)
  })
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  app.get('/state', async () => state())

  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.url.split('?')
    const allowed = METHODS[path]
    if (allowed === undefined)
      return sendProblem(reply, 404, `Known here: ${Object.keys(METHODS).join(', ')}.`)
    reply.header('allow', allowed)
    return sendProblem(reply, 405, `Allowed here: ${allowed}.`)
  })
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if ((error.statusCode ?? 500) >= 500) log.error({ err: error }, 'admin request failed')
    sendError(reply, error)
  })

  await app.register(reloadRoute(reload))
  await app.register(explainRoute(explain))
  await app.listen({ host, port })
  const address = app.server.address()
  if (address === null || typeof address === 'string')
    throw new TypeError('The admin port has no TCP address.')
  return { host: address.address, port: address.port, close: async () => app.close() }
}

const READ = 'GET, HEAD'
const METHODS: Readonly<Record<string, string>> = {
  '/livez': READ,
  '/readyz': READ,
  '/metrics': READ,
  '/state': READ,
  '/reload': 'POST',
  '/explain': 'POST',
}
