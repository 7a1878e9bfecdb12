/** Where a message ends, and whether another may follow it (RFC 9112 sections 6 and 9.3). */
import type { Fields } from '../message.js'
import { listHas } from './fields.js'
import { type Framing, type ParsedRequest, type ParsedResponse, WireError } from './message.js'

const NONE: Framing = { kind: 'none', bytes: 0 }
const CHUNKED: Framing = { kind: 'chunked', bytes: 0 }
const TILL_CLOSE: Framing = { kind: 'close', bytes: 0 }
/** At most as many digits as a number holds exactly. */
const LENGTH = /^\d{1,15}$/

/** The framing of a request body; `none` when there is no body or an empty one. Throws `bad-framing`. */
export function requestFraming(head: ParsedRequest): Framing {
  return announced(head) ?? NONE
}

/** The framing of the response to a request with this method; `none` as for requests. Throws `bad-framing`. */
export function responseFraming(head: ParsedResponse, requestMethod: string): Framing {
  const framing = announced(head) ?? TILL_CLOSE
  const { status, version } = head
  // HTTP/1.0 has no interim responses (RFC 9110 section 15.2), so what would follow this one is undefined.
  if (status < 200 && version === '1.0') throw new WireError('bad-framing', 'an interim answer in HTTP/1.0')
  return status < 200 || isBodyless(head, requestMethod) ? NONE : framing
}

/** True when a response ends with its head, whatever its fields say. */
export function isBodyless({ status }: ParsedResponse, requestMethod: string): boolean {
  return requestMethod === 'HEAD' || status === 204 || status === 304
}

/**
 * True when a faulty upstream may send a body behind a response that is bodyless: its fields announce one, or it answers
 * a HEAD, which some programs handle like a GET.
 */
export function mayTrailBody(head: ParsedResponse, requestMethod: string): boolean {
  const framing = announced(head)
  return framing === undefined ? requestMethod === 'HEAD' : framing.kind !== 'none'
}

/**
 * The framing that the fields announce. Only a single plain length, or `chunked` alone in HTTP/1.1, is unambiguous.
 * Anything else is an error, even in a message without a body, and even when repeated lengths are equal.
 */
function announced({ version, fields }: ParsedRequest | ParsedResponse): Framing | undefined {
  const coding = only(fields, 'transfer-encoding')
  const length = only(fields, 'content-length')
  if (coding !== undefined) {
    if (length !== undefined) throw new WireError('bad-framing', 'a length beside a coding')
    if (version === '1.0') throw new WireError('bad-framing', 'a coding in HTTP/1.0')
    if (coding.toLowerCase() !== 'chunked') throw new WireError('bad-framing', 'an unknown coding')
    return CHUNKED
  }
  if (length === undefined) return undefined
  if (!LENGTH.test(length)) throw new WireError('bad-framing', 'an invalid length')
  const bytes = Number(length)
  return bytes === 0 ? NONE : { kind: 'length', bytes }
}

function only({ raw, names }: Fields, name: string): string | undefined {
  const at = names.indexOf(name)
  if (at === -1) return undefined
  if (names.indexOf(name, at + 1) !== -1) throw new WireError('bad-framing', `${name} twice`)
  return raw[2 * at + 1]
}

/** True when the sender allows another message on the connection. */
export function isPersistent({ version, fields }: ParsedRequest | ParsedResponse): boolean {
  const options = fields.get('connection')
  if (options === undefined) return version === '1.1'
  return !listHas(options, 'close') && (version === '1.1' || listHas(options, 'keep-alive'))
}
