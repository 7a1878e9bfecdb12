/** Refusals, and the one way in which a service answers errors, known and unknown. */
import type { ServiceLog } from '../log.js'
import type { Reply, Request, Server } from './server.js'

const codes: Readonly<Record<number, string>> = {
  404: 'not_found',
  405: 'method_not_allowed',
  415: 'unsupported_media_type',
  500: 'internal',
}

/** A refusal with an HTTP status; each API of a service sends it in its own form. */
export class HttpError extends Error {
  readonly status: number
  /** A word for programs. */
  readonly code: string
  /** Seconds for Retry-After; with 429 and 503 there always are some. */
  readonly retryAfter: number | undefined

  constructor(
    status: number,
    message: string,
    code = codes[status] ?? 'malformed',
    retryAfter: number | undefined = status === 503 || status === 429 ? 1 : undefined,
  ) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfter = retryAfter
  }
}

export interface ErrorAnswers {
  /** Sends a refusal in the form of the API. */
  readonly send: (refused: HttpError, request: Request, reply: Reply) => unknown
  /** Refusals for errors of the service's own; undefined for others. */
  readonly refusalOf?: (error: unknown) => HttpError | undefined
  readonly unknownPath: string
  /** The message for a request that cannot be read; by default that of the error itself. */
  readonly malformed?: string
  /** The message for an error that nobody foresaw; the log has the details. */
  readonly internal: string
  /** `WWW-Authenticate` of a 401 (RFC 9110, section 11.6.1). */
  readonly challenge?: string
  readonly log: ServiceLog
}

/** Answers the errors of a server's routes, and its unknown paths. Only unexpected errors are logged. */
export function answerErrors(server: Server, answers: ErrorAnswers): void {
  const { send, refusalOf, unknownPath, malformed, internal, challenge, log } = answers
  const meaningOf = (error: unknown, request: Request): HttpError => {
    if (error instanceof HttpError) return error
    const known = refusalOf?.(error)
    if (known) return known
    const { statusCode = 500, code, message, stack = String(error) } = error as Partial<Unforeseen>
    // Fastify's error for QUERY without a Content-Type: known paths have refused that method before.
    if (code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE') return new HttpError(404, unknownPath)
    if (code === 'FST_ERR_BAD_URL') return new HttpError(400, malformed ?? 'The address is not well formed.')
    if (statusCode >= 400 && statusCode < 500) {
      return new HttpError(statusCode, malformed ?? message ?? '', 'malformed')
    }
    const id = String(request.headers['x-sluice-request-id'] ?? '').slice(0, 128)
    log.error({ request: id, route: request.routeOptions.url, code, err: stack }, 'request failed')
    return new HttpError(500, internal)
  }
  server.setErrorHandler((error, request, reply) => {
    const refused = meaningOf(error, request)
    if (refused.status === 401 && challenge) reply.header('www-authenticate', challenge)
    if (refused.retryAfter !== undefined) reply.header('retry-after', refused.retryAfter)
    return send(refused, request, reply.code(refused.status))
  })
  server.setNotFoundHandler(() => {
    throw new HttpError(404, unknownPath)
  })
}

/** An error of Fastify, or any other. */
interface Unforeseen extends Error {
  readonly statusCode: number
  readonly code: string
}
