/** The service over HTTP, on fastify; the handlers do not depend on it. */
import { STATUS_CODES } from 'node:http'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { html } from '../pages/html.js'
import type { StoreHealth } from '../storage/health.js'
import { MAX_BODY_BYTES } from './form/entry.js'
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

type LanguageOf = (request: FastifyRequest) => Language

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const DEFAULT_PROJECT = 'default'
/** About as long as it takes to reconnect to a store. */
const RETRY_AFTER_SECONDS = 5
/** Node.js refuses a longer request head, so an id of any length is looked up, and not found. */
const MAX_PATH = 16 * 1024

/** Builds the server; it does not listen yet. */
export function buildApp(
  routes: Routes,
  languages: Languages,
  log: Log,
  failed: StoreHealth['failed'],
): FastifyInstance {
  const languageOf = (request: FastifyRequest) => languages.choose(request.headers['accept-language'])
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const language = languageOf(request)
    return send(reply, inWords(request, answerTo(error, request, log, failed), language), language)
  }
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    logger: false,
    // The gateway keeps idle connections open; closing waits for requests, not for those.
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: MAX_PATH, ignoreTrailingSlash: true },
    frameworkErrors: (error, request, reply) => {
      void fail(error, request, reply)
    },
  })
  // A refused body is read to its end and dropped: closing the connection in the middle of it would lose the response.
  app.addHook('onSend', async (_request, reply) => {
    if (reply.statusCode === 413) reply.removeHeader('connection')
  })
  // Bodies are decoded by our own code, whatever their media type.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.setErrorHandler(fail)
  app.setNotFoundHandler(() => {
    throw new HttpError(404, 'not_found', 'There is nothing at this address.')
  })
  for (const [url, methods] of routes) addRoute(app, url, methods, languageOf)
  return app
}

function addRoute(app: FastifyInstance, url: string, methods: Methods, languageOf: LanguageOf): void {
  for (const method of METHODS) {
    const handler = methods[method]
    if (handler)
      app.route({
        method,
        url,
        handler: (request, reply) => run(handler, request, reply, languageOf(request)),
      })
  }
  const others = [...METHODS, 'OPTIONS' as const].filter(method => method === 'OPTIONS' || !methods[method])
  const allow = METHODS.filter(method => methods[method]).flatMap(method =>
    method === 'GET' ? ['GET', 'HEAD'] : [method],
  )
  const message = `Only ${allow.join(', ')} can be used here.`
  app.route({
    method: others,
    url,
    handler: (_request, reply) => {
      reply.header('allow', allow.join(', '))
      throw new HttpError(405, 'method_not_allowed', message)
    },
  })
}

async function run(
  handler: Handler,
  request: FastifyRequest,
  reply: FastifyReply,
  language: Language,
): Promise<FastifyReply> {
  const header = (name: string) => {
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  if (!/^\s*(?:identity\s*)?$/i.test(header('content-encoding') ?? '')) {
    throw new HttpError(415, 'unsupported_media_type', 'Send the body without a content encoding.')
  }
  const answer = await handler({
    query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
    header,
    body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
    project: header('x-sluice-project') || DEFAULT_PROJECT,
    source: header('x-sluice-network') || request.ip,
    language,
    params: request.params as Record<string, string>,
  })
  return send(reply, answer, language)
}

/** Personal data: no cache may store a response, and its content depends on Accept and Accept-Language. */
function send(reply: FastifyReply, { status, headers, body }: Answer, { say }: Language): FastifyReply {
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
function inWords(request: FastifyRequest, answer: Answer, language: Language): Answer {
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
function answerTo(error: unknown, request: FastifyRequest, log: Log, failed: StoreHealth['failed']): Answer {
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
  const { statusCode, code } = error as Partial<FastifyError>
  if (statusCode === 413) return problem(new HttpError(413, 'too_large', 'The body is larger than 1 MiB.'))
  if (statusCode === 415) {
    return problem(new HttpError(415, 'unsupported_media_type', 'Send a body with its Content-Type.'))
  }
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
