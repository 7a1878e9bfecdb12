/** The service over HTTP, on fastify; the handlers do not depend on it. */
import { STATUS_CODES } from 'node:http'
import { BodyRefused } from '../http/body.js'
import {
  bodyOf,
  createServer,
  hasBody,
  isPlain,
  isUnknownPath,
  type Reply,
  type Request,
  refuseOtherMethods,
  type Server,
  sourceOf,
} from '../http/server.js'
import { html } from '../pages/html.js'
import type { StoreHealth } from '../storage/health.js'
import type { FieldError } from './form/errors.js'
import { type Answer, type Handler, HttpError, type Methods, prefers, type Routes, refusal } from './http.js'
import { PreconditionFailed } from './identities.js'
import type { Language, Languages } from './languages.js'
import { PAGE_HEADERS, renderPage } from './page.js'
import { CHANGED_MEANWHILE, takenError } from './routes/self-service.js'
import { IdentifierTaken, StoreUnavailable } from './store/contract.js'

/** The service's log, for the operator. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

type LanguageOf = (request: Request) => Language

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const DEFAULT_PROJECT = 'default'
/** About as long as it takes to reconnect to a store. */
const RETRY_AFTER_SECONDS = 5
/** Builds the server; it does not listen yet. `secret` is the gateway's. */
export function buildApp(
  routes: Routes,
  languages: Languages,
  log: Log,
  failed: StoreHealth['failed'],
  secret: string | undefined,
): Server {
  const languageOf = (request: Request) => languages.choose(request.headers['accept-language'])
  const fail = (error: unknown, request: Request, reply: Reply) => {
    const language = languageOf(request)
    return send(reply, inWords(request, answerTo(error, request, log, failed), language), language)
  }
  const refuseUrl = (error: unknown, request: Request, reply: Reply) => void fail(error, request, reply)
  const app = createServer({ secret, refuseUrl })
  app.setErrorHandler(fail)
  app.setNotFoundHandler(() => {
    throw unknownPath()
  })
  for (const [url, methods] of routes) addRoute(app, url, methods, languageOf)
  return app
}

const unknownPath = (): HttpError => new HttpError(404, 'not_found', 'There is nothing at this address.')

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
  const refuse = (_request: Request, allow: string) =>
    new HttpError(405, 'method_not_allowed', `Only ${allow} can be used here.`)
  refuseOtherMethods(app, url, allowed, refuse)
}

async function run(handler: Handler, request: Request, reply: Reply, language: Language): Promise<Reply> {
  const header = (name: string) => {
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  if (!isPlain(request)) {
    throw new HttpError(415, 'unsupported_media_type', 'Send the body without a content encoding.')
  }
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
function send(reply: Reply, { status, headers, body }: Answer, { say }: Language): Reply {
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
  const told = { status, detail: first?.message, code: first?.code }
  return { type: 'about:blank', title: STATUS_CODES[status], ...told, errors }
}

function problem(error: HttpError): Answer {
  return refusal(error.status, [{ path: '', code: error.code, message: error.message }])
}

/** An error as a page, for a person with a browser. */
function inWords(request: Request, answer: Answer, language: Language): Answer {
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

/** The response to an error. Only unexpected errors are logged, without anything a client sent. */
function answerTo(error: unknown, request: Request, log: Log, failed: StoreHealth['failed']): Answer {
  if (error instanceof HttpError) return problem(error)
  if (error instanceof IdentifierTaken) return refusal(409, [takenError(error)])
  if (error instanceof PreconditionFailed) return refusal(412, [CHANGED_MEANWHILE])
  if (error instanceof StoreUnavailable) {
    failed(error.fault, error.message)
    const away = new HttpError(
      503,
      'store_unavailable',
      'The identity store cannot be reached. Try again shortly.',
    )
    return { ...problem(away), headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } }
  }
  if (error instanceof BodyRefused) {
    const { status, code, message } = error
    const refused = problem(new HttpError(status, code, message))
    return status === 503 ? { ...refused, headers: { 'retry-after': '1' } } : refused
  }
  if (isUnknownPath(error)) return problem(unknownPath())
  const { statusCode, code } = error as { statusCode?: number; code?: string }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return problem(new HttpError(statusCode, 'malformed', 'The request is malformed.'))
  }
  const id = request.headers['x-sluice-request-id']
  log.error(
    { id, code, err: error instanceof Error ? error.stack : String(error) },
    'identity request failed',
  )
  return problem(new HttpError(500, 'internal', 'Something went wrong here.'))
}
