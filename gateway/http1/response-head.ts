/** The head of a response (RFC 9112 sections 4 and 5). */
import { parseFields } from './fields.js'
import { isLineEnd, SPACE, skip, TEXT } from './grammar.js'
import { type ParsedResponse, WireError } from './message.js'
import { versionAt } from './request-head.js'

const STATUS_AT = 'HTTP/1.1 '.length
const STATUS_END = STATUS_AT + 3

/**
 * Parses a head: its lines, each with its CRLF, without the empty line. Throws `bad-request` on a violation of the
 * grammar, except that the blank before an empty reason may be missing, as it often is.
 */
export function parseResponseHead(head: string): ParsedResponse {
  const version = versionAt(head, 0)
  if (version === undefined || head.charCodeAt(STATUS_AT - 1) !== SPACE)
    throw new WireError('bad-request', 'the version')
  const status = digit(head, STATUS_AT) * 100 + digit(head, STATUS_AT + 1) * 10 + digit(head, STATUS_AT + 2)
  if (!(status >= 100)) throw new WireError('bad-request', 'the status')
  const hasReason = head.charCodeAt(STATUS_END) === SPACE
  const lineEnd = hasReason ? skip(head, STATUS_END + 1, TEXT) : STATUS_END
  if (!isLineEnd(head, lineEnd)) throw new WireError('bad-request', 'the reason')
  return {
    status,
    reason: hasReason ? head.slice(STATUS_END + 1, lineEnd) : '',
    version,
    fields: parseFields(head, lineEnd + 2),
  }
}

/** NaN if there is no digit. */
function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 0x30
  return value >= 0 && value <= 9 ? value : Number.NaN
}
