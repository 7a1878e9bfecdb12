/** The head of a request (RFC 9112 sections 3 and 5). */
import type { Fields } from '../message.js'
import { listHas, parseFields } from './fields.js'
import { isLineEnd, SPACE, skip, TARGET, TOKEN } from './grammar.js'
import { Http2Preface, type ParsedRequest, WireError } from './message.js'

const VERSION_LENGTH = 'HTTP/1.1'.length
/** The preface of HTTP/2 up to its first empty line: no request, but it looks like the head of one. */
export const HTTP2_HEAD = 'PRI * HTTP/2.0\r\n'

/**
 * Parses a head: its lines, each with its CRLF, without the empty line. Throws `bad-request` on a violation of the
 * grammar. Any token is accepted as a method, and any run of visible bytes as a target.
 */
export function parseRequestHead(head: string): ParsedRequest {
  const methodEnd = skip(head, 0, TOKEN)
  if (methodEnd === 0 || head.charCodeAt(methodEnd) !== SPACE)
    throw new WireError('bad-request', 'the method')
  const target = methodEnd + 1
  const targetEnd = skip(head, target, TARGET)
  if (targetEnd === target || head.charCodeAt(targetEnd) !== SPACE)
    throw new WireError('bad-request', 'the target')
  const lineEnd = targetEnd + 1 + VERSION_LENGTH
  const version = versionAt(head, targetEnd + 1)
  if (version === undefined || !isLineEnd(head, lineEnd))
    throw head === HTTP2_HEAD ? new Http2Preface() : new WireError('bad-request', 'the version')
  return {
    method: head.slice(0, methodEnd),
    target: head.slice(target, targetEnd),
    version,
    fields: parseFields(head, lineEnd + 2),
  }
}

/** The version at position `at`; undefined for a version that is not supported. */
export function versionAt(head: string, at: number): '1.0' | '1.1' | undefined {
  if (head.startsWith('HTTP/1.1', at)) return '1.1'
  return head.startsWith('HTTP/1.0', at) ? '1.0' : undefined
}

/** WebSocket is the only protocol that is switched to; any other offer is ignored (RFC 9110 section 7.8). */
export function asksForWebSocket({ method, version, fields }: ParsedRequest): boolean {
  const offered = fields.get('upgrade')
  if (offered === undefined || method !== 'GET' || version !== '1.1') return false
  return offered.toLowerCase() === 'websocket' && listHas(fields.get('connection') ?? '', 'upgrade')
}

/** True when the client waits for a 100 before it sends the body (RFC 9110 section 10.1.1). */
export function expectsContinue({ version, fields }: ParsedRequest): boolean {
  return version === '1.1' && fields.get('expect')?.toLowerCase() === '100-continue'
}

/** True when trailers may be sent to the client (RFC 9110 section 10.1.4). */
export function takesTrailers({ fields }: { readonly fields: Fields }): boolean {
  return listHas(fields.get('te') ?? '', 'trailers')
}
