/** What a handler receives and returns, independent of any web framework; and the common form of a refusal. */
import { HttpError } from '../http/errors.js'
import { mediaTypeOf } from '../http/server.js'
import { isJsonObject, JsonTextError, type JsonValue, parseJson } from '../json.js'
import { FORM_TYPES } from './decode/decode.js'
import type { FieldError } from './decode/messages.js'
import type { Submission } from './decode/parse.js'
import type { Language } from './languages.js'

export interface IdentityRequest {
  readonly query: URLSearchParams
  /** A header field's value by lowercase name. */
  readonly header: (name: string) => string | undefined
  /**
   * Reads the body, to be called once path, key and media type are right: what is refused before costs no memory.
   * Rejects when it is too large, too slow, or too much at a time.
   */
  readonly body: () => Promise<Buffer>
  /** Identities of different projects are separate. */
  readonly project: string
  /** The client's network as reported by the gateway in front; without one, the address of the peer. */
  readonly source: string
  /** The address at the other end of the connection. */
  readonly peer: string
  /** The available language that the client prefers. */
  readonly language: Language
  readonly params: Readonly<Record<string, string>>
}

export interface HttpAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** A JSON value, or the text of a page when `content-type` is set. */
  readonly body?: unknown
}

export type IdentityHandler = (request: IdentityRequest) => Promise<HttpAnswer>
export type Methods = Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', IdentityHandler>>>
/** The service's routes: paths with `:name` parameters. */
export type IdentityRoutes = ReadonlyMap<string, Methods>

/** A refusal of single fields. */
export class FieldsRefused extends HttpError {
  readonly errors: readonly FieldError[]
  constructor(status: number, ...errors: [FieldError, ...FieldError[]]) {
    super(status, errors[0].message, errors[0].code)
    this.errors = errors
  }
}

export function noIdentity(): HttpError {
  return new HttpError(404, 'There is no such identity.')
}

/** A refusal: sent as problem details, with `errors: [{path, code, message}]` (see app.ts). */
export function refusal(status: number, errors: readonly FieldError[]): HttpAnswer {
  return { status, body: { errors } }
}

/** The status for the errors of a submission. */
export function statusOf(errors: readonly FieldError[]): number {
  if (errors.some(({ code }) => code === 'unsupported_media_type')) return 415
  if (errors.some(({ code }) => code === 'too_large')) return 413
  return errors.some(({ code }) => code === 'taken') ? 409 : 400
}

/** The request's form. Of a media type that no form has it is left unread, as it is refused whatever it says. */
export async function submissionOf(request: IdentityRequest): Promise<Submission> {
  const isForm = FORM_TYPES.some(type => type === mediaTypeOf(request.header('content-type')))
  return {
    contentType: request.header('content-type'),
    body: isForm ? await request.body() : Buffer.alloc(0),
  }
}

/** The request's body as a JSON object. Throws HttpError. */
export async function jsonBody(request: IdentityRequest): Promise<Record<string, JsonValue>> {
  if (mediaTypeOf(request.header('content-type')) !== 'application/json') {
    throw new HttpError(415, 'Send application/json.')
  }
  const text = (await request.body()).toString('utf8')
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error
    throw new HttpError(400, `The body ${error.message}.`, error.code)
  }
  if (!isJsonObject(value)) throw new HttpError(400, 'The body has to be a JSON object.')
  return value
}

/** True when the client names `mediaType` itself (not by a wildcard) and prefers it at least as much as `other`. */
export function prefers(accept: string | undefined, mediaType: string, other: string): boolean {
  const wanted = quality(accept, mediaType)
  return wanted > 0 && wanted >= quality(accept, other)
}

/** RFC 9110 section 12.5.1, for ranges without wildcards. */
function quality(accept: string | undefined, mediaType: string): number {
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type, ...parameters] = range.split(';').map(part => part.trim())
    if (type !== mediaType) continue
    const weight = parameters.find(parameter => parameter.startsWith('q='))
    const value = weight === undefined ? 1 : Number(weight.slice(2))
    return Number.isNaN(value) ? 0 : value
  }
  return 0
}

/** Whether the writer knows the stored version. */
export type Precondition = (version: number) => boolean

/** The strong entity tag of a version (RFC 9110 section 8.8.3). */
export function etagOf(version: number): string {
  return `"${version}"`
}

/**
 * What an If-Match field requires (RFC 9110 section 13.1.1); weak tags never match, without the field every version
 * does.
 */
export function ifMatch(field: string | undefined): Precondition {
  if (field === undefined) return () => true
  const tags = field.split(',').map(tag => tag.trim())
  return version => tags.includes('*') || tags.includes(etagOf(version))
}
