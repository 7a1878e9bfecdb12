/** The service over HTTP, on fastify; the handlers do not depend on it. */
import { STATUS_CODES } from 'node:http'
import { answerErrors, HttpError } from '../http/errors.js'
import { html } from '../http/page.js'
import {
  bodyOf,
  createServer,
  hasBody,
  type Reply,
  type Request,
  refuseEncoded,
  refuseOtherMethods,
  type Server,
  sourceOf,
} from '../http/server.js'
import type { ServiceLog } from '../log.js'
import type { StoreHealth } from '../storage/health.js'
import type { FieldError } from './decode/messages.js'
import {
  FieldsRefused,
  type HttpAnswer,
  type IdentityHandler,
  type IdentityRoutes,
  type Methods,
  prefers,
  refusal,
} from './http.js'
import { PreconditionFailed } from './identities.js'
import type { Language, Languages } from './languages.js'
import { PAGE_HEADERS, renderPage } from './routes/page.js'
import { CHANGED_MEANWHILE, takenError } from './routes/self-service.js'
import { IdentifierTaken, StoreUnavailable } from './store/contract.js'

type LanguageOf = (request: Request) => Language

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const DEFAULT_PROJECT = 'default'
/** About as long as it takes to reconnect to a store. */
const RETRY_AFTER_SECONDS = 5
/** Builds the server; it does not listen yet. `secret` is the gateway's. */
export function buildApp(
  routes: IdentityRoutes,
  languages: Languages,
  log: ServiceLog,
  failed: StoreHealth['failed'],
  secret: string | undefined,
): Server {
  const languageOf = (request: Request) => languages.choose(request.headers['accept-language'])
  const app = createServer({ secret })
  answerErrors(app, {
    send: (refused, request, reply) => {
      const language = languageOf(request)
      return send(reply, inWords(request, problem(refused), language), language)
    },
    refusalOf: error => refusalOf(error, failed),
    unknownPath: 'There is nothing at this address.',
    malformed: 'The request is malformed.',
    internal: 'Something went wrong here.',
    log,
  })
  for (const [url, methods] of routes) addRoute(app, url, methods, languageOf)
  return app
}

function addRoute(app: Server, url: string, methods: Methods, languageOf: LanguageOf): void {
  for (const method of METHODS) {
    const handler = methods[method]
    if (handler)
      app.route({
        method,
        url,
        handler: (request, reply) => run(handler, request, reply, languageOf(request)),
      })
  }
  const allowed = METHODS.filter(method => methods[method])
  refuseOtherMethods(app, url, allowed, (_method, allow) => `Only ${allow} can be used here.`)
}

async function run(
  handler: IdentityHandler,
  request: Request,
  reply: Reply,
  language: Language,
): Promise<Reply> {
  const header = (name: string) => {
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  refuseEncoded(request)
  const answer = await handler({
    query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
    header,
    body: async () => (hasBody(request) ? bodyOf(request, reply) : Buffer.alloc(0)),
    project: header('x-sluice-project') || DEFAULT_PROJECT,
    source: sourceOf(request),
    peer: request.ip,
    language,
    params: request.params as Record<string, string>,
  })
  return send(reply, answer, language)
}

/** Personal data: no cache may store a response, and its content depends on Accept and Accept-Language. */
function send(reply: Reply, { status, headers, body }: HttpAnswer, { say }: Language): Reply {
  reply.status(status).headers({
    'cache-control': 'no-store',
    vary: 'accept, accept-language',
    'x-content-type-options': 'nosniff',
  })
  if (headers) reply.headers(headers)
  if (body === undefined) return reply.send()
  if (headers?.['content-type']) return reply.send(body)
  if (!isRefusal(body)) return reply.type('application/json; charset=utf-8').send(JSON.stringify(body))
  return reply.type('application/problem+json').send(JSON.stringify(said(status, body.errors, say)))
}

function isRefusal(body: unknown): body is { readonly errors: readonly FieldError[] } {
  return typeof body === 'object' && body !== null && 'errors' in body && Array.isArray(body.errors)
}

/** Problem details (RFC 9457), as the gateway in front sends them, with the problem at each place in `errors`. */
function said(status: number, list: readonly FieldError[], say: Language['say']): object {
  const errors = list.map(error => ({ ...error, message: say(error.message) }))
  const [first] = errors
  const summary = { status, detail: first?.message, code: first?.code }
  return { type: 'about:blank', title: STATUS_CODES[status], ...summary, errors }
}

function problem(refused: HttpError): HttpAnswer {
  const { status, code, message } = refused
  return refusal(status, refused instanceof FieldsRefused ? refused.errors : [{ path: '', code, message }])
}

/** An error as a page, for a person with a browser. */
function inWords(request: Request, answer: HttpAnswer, language: Language): HttpAnswer {
  if (!prefers(request.headers.accept, 'text/html', 'application/json')) return answer
  const { errors } = answer.body as { errors: readonly FieldError[] }
  const body = renderPage(
    language,
    'Error',
    'This did not work',
    html`${errors.map(({ message }) => html`<p>${language.say(message)}</p>`)}`,
  )
  return { ...answer, headers: { ...PAGE_HEADERS, ...answer.headers }, body }
}

/** Refusals for what the store throws; `failed` counts its faults. */
function refusalOf(error: unknown, failed: StoreHealth['failed']): HttpError | undefined {
  if (error instanceof IdentifierTaken) return new FieldsRefused(409, takenError(error))
  if (error instanceof PreconditionFailed) return new FieldsRefused(412, CHANGED_MEANWHILE)
  if (!(error instanceof StoreUnavailable)) return undefined
  failed(error.fault, error.message)
  return new HttpError(
    503,
    'The identity store cannot be reached. Try again shortly.',
    'store_unavailable',
    RETRY_AFTER_SECONDS,
  )
}
