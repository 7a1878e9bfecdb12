/** The admin port: health, metrics and state; on loopback unless configured otherwise. The home file of fastify. */
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { Log } from '../types.js'
import { addApiDocument, DOCUMENT_PATH, PAGE_PATH } from './api-document.js'
import { type Credits, creditRoutes } from './credit.js'
import { type Asked, explainRoute } from './explain.js'
import { type Inspected, inspectRoutes } from './inspect.js'
import { keyGuard, OPEN } from './key.js'
import type { KeyList } from './key-list.js'
import { keyRoutes } from './keys.js'
import { type LiveData, liveRoutes } from './live.js'
import { accessRoutes, type Overrides, overrideRoutes } from './overrides.js'
import { pageRoutes, UI_PATH } from './page.js'
import { inputFault, refuseClient, sendError, sendProblem } from './problem.js'
import { type ReloadResult, reloadRoute } from './reload.js'
import type { RouteList } from './route-list.js'
import { type ReadUsage, usageRoutes } from './usage.js'
import type { WrongKeys } from './wrong-keys.js'

export interface AdminOptions extends Overrides {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Key that every route needs unless it is marked as open; '' if none is needed. */
  readonly key: string
  /** Throttles wrong keys. */
  readonly wrongKeys: WrongKeys
  readonly health: Pick<Health, 'readiness'>
  /** Problems that do not stop the gateway from taking requests, one sentence each. */
  troubles(): readonly string[]
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  /** What is in force, and how the last reload ended. */
  state(): object | Promise<object>
  /** Reloads the configuration; never rejects. */
  reload(): Promise<ReloadResult>
  /** What the gateway would do with a request, without charging anything. */
  explain(asked: Asked): Promise<object>
  readonly inspected: Inspected
  readonly credits: Credits
  readonly live: LiveData
  readonly usage: ReadUsage
  /** The routes in force. */
  routes(): RouteList
  /** The API keys, or those of a project. */
  keys(project?: string): Promise<KeyList>
  /** Addresses of the services' own documents, by service. */
  documents(): Readonly<Record<string, string>>
  readonly log: Log
}

export interface Admin {
  readonly host: string
  readonly port: number
  /** Stops listening and ends every connection. */
  close(): Promise<void>
}

/** How long a whole request may take to arrive. */
const PATIENCE_MS = 10_000
/** How long a connection may be silent: a reload waits until every worker has opened what the files need. */
const ANSWER_MS = 60_000
/** Announced to clients, so that they begin no request on a connection that is about to close. */
const KEEP_ALIVE_MS = 5_000
const MAX_BODY_BYTES = 1024
/** Node's own limit for a request's head, and so for its path. */
const MAX_HEAD_BYTES = 16 * 1024

/** Starts listening; rejects when the address is not available. */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const { host, port, key, health, metrics, state, reload, explain, documents, wrongKeys, log } = options
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: PATIENCE_MS,
    connectionTimeout: ANSWER_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: true,
    // Each route's schema limits the length of an id, and its error is a sentence.
    routerOptions: { maxParamLength: MAX_HEAD_BYTES },
    // Unknown fields are refused, not ignored, and a number is no text.
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false } },
    schemaErrorFormatter: inputFault,
    // A path that cannot be decoded never reaches a route.
    clientErrorHandler: refuseClient,
    frameworkErrors: (error, _request, reply: FastifyReply) => sendError(reply, error),
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.addHook('onRequest', keyGuard(key, wrongKeys))
  // These routes read the query, so a reason in a body would be lost.
  app.addHook('preValidation', async ({ method, body }, reply) => {
    if (method !== 'DELETE' || body === undefined || body === null) return undefined
    return sendProblem(reply, 400, 'A DELETE has no body here: put why and by into the query.')
  })
  const methods = new Map<string, string[]>()
  app.addHook('onRoute', ({ url, method }) => {
    if (!url.startsWith(PAGE_PATH) && !url.startsWith('/ui'))
      methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()])
  })
  await addApiDocument(app)

  app.get('/', async () => ({
    ui: UI_PATH,
    document: DOCUMENT_PATH,
    page: PAGE_PATH,
    services: documents(),
  }))
  app.get('/livez', { ...OPEN, schema: LIVEZ }, async () => ({ status: 'alive' }))
  app.get('/readyz', { ...OPEN, schema: READYZ }, async (_request, reply) => {
    const { readiness } = health
    if (readiness.ready) return standing(options.troubles())
    return sendProblem(reply, 503, `Not ready, ${readiness.reason}.`)
  })
  app.get('/metrics', { schema: METRICS }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  )
  app.get('/state', { schema: STATE }, async () => state())
  app.get('/routes', { schema: ROUTES }, async () => options.routes())

  const notFound = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const [path = ''] = request.url.split('?')
    const allowed = [...methods].find(([url]) => isBelow(url, path))?.[1].join(', ')
    if (allowed === undefined)
      return sendProblem(reply, 404, `Known here: ${[...methods.keys()].join(', ')}.`)
    reply.header('allow', allowed)
    return sendProblem(reply, 405, `Allowed here: ${allowed}.`)
  }
  app.setNotFoundHandler(notFound)
  app.setErrorHandler((error: FastifyError, request, reply) => {
    // Fastify asks for the content type of a QUERY before it looks for a route; none of ours takes a QUERY.
    if (error.code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE') return notFound(request, reply)
    if ((error.statusCode ?? 500) >= 500) log.error({ err: error }, 'admin request failed')
    sendError(reply, error)
  })

  await app.register(pageRoutes())
  await app.register(reloadRoute(reload))
  await app.register(explainRoute(explain))
  await app.register(inspectRoutes(options.inspected))
  await app.register(creditRoutes(options.credits))
  await app.register(accessRoutes(options.access))
  await app.register(liveRoutes(options.live))
  await app.register(usageRoutes(options.usage))
  await app.register(keyRoutes(options.keys))
  await app.register(overrideRoutes(options))
  await app.listen({ host, port })
  const address = app.server.address()
  if (address === null || typeof address === 'string')
    throw new TypeError('The admin port has no TCP address.')
  return { host: address.address, port: address.port, close: async () => app.close() }
}

const LIVEZ = { tags: ['Health'], summary: 'The process runs' }
const READYZ = { tags: ['Health'], summary: 'It takes requests: 200, or 503 while it starts or drains' }
/** A service whose database is down must not make the whole gateway unready. */
const standing = (troubles: readonly string[]) =>
  troubles.length === 0 ? { status: 'ready' } : { status: 'degraded', detail: `${troubles.join('; ')}.` }

const METRICS = { tags: ['Health'], summary: 'Metrics as Prometheus reads them', produces: ['text/plain'] }
const ROUTES = {
  tags: ['Policy'],
  summary: 'Where requests go by host and path, in the order of gateway.yaml, 1000 routes at most',
}
const STATE = { tags: ['Policy'], summary: 'What is in force since when, and how the last reload ended' }

/** Whether a path matches a route, such as `/projects/:id/counters`. */
function isBelow(route: string, path: string): boolean {
  const [wanted, given] = [route.split('/'), path.split('/')]
  return (
    wanted.length === given.length && wanted.every((part, i) => part.startsWith(':') || part === given[i])
  )
}

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string }

/** Starts unready; a process that can answer at all is alive, so liveness needs no state. */
export class Health {
  readonly #trouble: () => string | undefined
  #isDraining = false
  #readiness: Readiness = { ready: false, reason: 'starting: the listeners are not up yet' }

  /** `trouble` says why a gateway that has started takes no requests just now. */
  constructor(trouble: () => string | undefined = () => undefined) {
    this.#trouble = trouble
  }

  /** The configuration is loaded and the listeners are up. Has no effect on a process that is draining. */
  ready(): void {
    if (!this.#isDraining) this.#readiness = { ready: true }
  }

  /** No new requests from now on: the process is about to end. */
  draining(): void {
    this.#isDraining = true
    this.#readiness = { ready: false, reason: 'draining: finishing the requests under way' }
  }

  get readiness(): Readiness {
    const reason = this.#readiness.ready ? this.#trouble() : undefined
    return reason === undefined ? this.#readiness : { ready: false, reason }
  }
}
