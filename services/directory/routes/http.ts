import { type ErrorAnswers, HttpError } from '../../http/errors.js'
import {
  bodyOf,
  createServer as createHttpServer,
  hasBody,
  mediaTypeOf,
  type Reply,
  type Request,
  refuseEncoded,
  refuseOtherMethods,
  type Schema,
  type Server,
} from '../../http/server.js'
import type { CountWrongKey } from '../../http/wrong-keys.js'
import type { ServiceLog } from '../../log.js'
import type { DirectoryCore } from '../core.js'
import { DirectoryStoreUnavailable, StoreFailed } from '../store/contract.js'

export { HttpError } from '../../http/errors.js'
export type { Reply, Request, Server } from '../../http/server.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type RouteHandler = (request: Request, reply: Reply) => Promise<unknown>
/** A handler with its description in the API document; a bare handler stays out of it (see api-document.ts). */
export interface Endpoint {
  readonly schema: Schema
  /** Runs after the body was read, before it is checked. */
  readonly preValidation?: (request: Request) => Promise<void>
  readonly handler: RouteHandler
}

/** The APIs with keys of their own. */
export type KeyArea = 'management' | 'scim'

/** What all routes work with. */
export interface RouteParts extends DirectoryCore {
  /** The service's own address without a trailing slash; undefined: derived from each request. */
  readonly baseUrl: string | undefined
  /** Of the management keys. */
  readonly keyHashes: readonly Buffer[]
  readonly wrongKey: CountWrongKey<KeyArea>
}

/** All methods that a path may have. */
export const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The server without routes: query parameters as lists of texts. `secret` is the gateway's. */
export function createServer(secret?: string): Server {
  const server = createHttpServer({ secret, querystringParser: parseQuery })
  // The schemas (../schemas) are the source of the types and of the API document. Bodies of the management API are
  // checked against them (body.ts); SCIM has its own rules and error shapes. Responses are sent as they are: a
  // serializer made from a schema would drop attributes that only the client knows. Tests compare them with the document.
  server.setValidatorCompiler(() => () => true)
  server.setSerializerCompiler(() => data => JSON.stringify(data))
  return server
}

/**
 * Reads bodies of these media types as JSON, and refuses others unread. Text that is not JSON is refused with 400,
 * compressed text with 415.
 */
export function acceptJson(server: Server, types: readonly string[]): void {
  server.addHook('preValidation', async (request, reply) => {
    if (request.is404 || !hasBody(request) || request.method === 'GET' || request.method === 'HEAD') return
    const type = mediaTypeOf(request.headers['content-type']) ?? ''
    if (!types.includes(type)) throw new HttpError(415, `The Content-Type must be ${types.join(' or ')}.`)
    refuseEncoded(request)
    request.body = parseJson(await bodyOf(request, reply))
  })
}

function parseJson(body: Buffer): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    return text.trim() === '' ? undefined : JSON.parse(text)
  } catch (error) {
    const place = / at position \d+/.exec((error as Error).message)?.[0] ?? ''
    throw new HttpError(400, `The body is not valid JSON${place}.`)
  }
}

/** Routes one path. Methods without a handler get 405 with `Allow`. */
export function resource(
  server: Server,
  url: string,
  handlers: Partial<Record<Method, RouteHandler | Endpoint>>,
): void {
  for (const [method, given] of Object.entries(handlers)) {
    const endpoint = typeof given === 'function' ? { handler: given } : given
    server.route({ method: method as Method, url, ...endpoint })
  }
  refuseOtherMethods(
    server,
    url,
    Object.keys(handlers),
    (method, allow) => `${method} is not allowed here; allowed: ${allow}.`,
  )
}

/** What the answers to errors have in common in all areas of the service. */
export function errorAnswers(log: ServiceLog) {
  return {
    refusalOf(error: unknown) {
      if (!(error instanceof DirectoryStoreUnavailable)) return undefined
      // A failure of the database is logged already.
      if (!(error instanceof StoreFailed)) log.error({ err: error.message }, 'request failed')
      return new HttpError(503, error.message)
    },
    unknownPath: 'There is nothing at this path.',
    internal: 'The directory service failed; its log has the details.',
    log,
  } satisfies Partial<ErrorAnswers>
}

/** Aborted when the client leaves; also, without effect, after its response. */
export function clientLeaves(reply: Reply): AbortSignal {
  const left = new AbortController()
  reply.raw.once('close', () => left.abort())
  return left.signal
}

export const param = (request: Request, name: string): string =>
  (request.params as Record<string, string>)[name] ?? ''

/** A query parameter. If any parameter is repeated or has brackets, it has no single meaning and is refused. */
export function query(request: Request, name: string): string | undefined {
  const values = request.query as Record<string, string[]>
  for (const [key, given] of Object.entries(values)) {
    if (given.length > 1) throw new HttpError(400, `The query parameter ${key.slice(0, 100)} is given twice.`)
    if (/[[\]]/.test(key)) throw new HttpError(400, 'Query parameters with brackets are not supported.')
  }
  return values[name]?.[0]
}

/** A query parameter that must be a whole number. */
export function queryInteger(request: Request, name: string): number | undefined {
  const text = query(request, name)
  if (text === undefined) return undefined
  const number = /^[+-]?\d{1,15}$/.test(text) ? Number(text) : undefined
  if (number === undefined) throw new HttpError(400, `The query parameter ${name} must be a whole number.`)
  return number
}

function parseQuery(text: string): Record<string, string[]> {
  const values: Record<string, string[]> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    values[name] ??= []
    values[name].push(value)
  }
  return values
}

const hostPattern = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/**
 * The `{base_url}` of responses: the setting, else what the gateway in front reports about the client's request
 * (X-Forwarded-Proto and -Host, which it sets from trusted facts), else the Host header.
 */
export function baseUrlOf(request: Request, setting: string | undefined): string {
  if (setting !== undefined) return setting
  const forwarded = request.headers['x-forwarded-host']
  const host = [forwarded, request.headers.host].find(
    candidate => typeof candidate === 'string' && hostPattern.test(candidate),
  )
  const protocol = request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${protocol}://${host ?? 'localhost'}`
}

/** The challenge of a 401 response of the management API (RFC 9110, section 11.6.1). */
export const wwwAuthenticate = 'Api-Key realm="management"'

/**
 * The token of `Authorization: Bearer <token>`, or the token alone: Okta's header authentication sends exactly what
 * was typed.
 */
export const bearer = (request: Request): string | undefined =>
  /^(?:bearer +)?(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
