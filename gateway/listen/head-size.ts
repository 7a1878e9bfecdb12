/** Heads that are too large, and what of them is: the target (RFC 9110 section 15.5.15) or the fields (RFC 6585). */
import type { IncomingMessage } from 'node:http'
import { type ErrorCode, GatewayError } from '../errors.js'
import { MAX_HEAD } from './limits.js'

/** What Node tells of the bytes at which its parser gave up. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/** Blanks of a request line with its version, and of a field's line; what HTTP/2 sends counts as if written so. */
const LINE_BYTES = '  HTTP/1.1\r\n'.length
const FIELD_BYTES = ': \r\n'.length
const LF = 0x0a
const REQUEST_LINE = /^[^\s:]+ \S*$/
const WITHIN_TARGET = /^(?:[A-Z-]+ )?\S*$/

/** Refuses a head of more than MAX_HEAD bytes, and names the larger part of it. */
export function checkHeadSize({ method = '', url = '', rawHeaders }: IncomingMessage): void {
  let fields = rawHeaders.length * (FIELD_BYTES / 2)
  for (const part of rawHeaders) fields += part.length
  const line = method.length + url.length + LINE_BYTES
  if (line + fields > MAX_HEAD) throw new GatewayError(line > fields ? 'target-too-long' : 'header-too-large')
}

/**
 * What of a head was too large to be read at all. Node says only at which byte of the last packet its limit was
 * passed. Where the line of that byte began in an earlier packet, an unbroken run is taken for a target: a client
 * must hear 414 of a target (RFC 9112 section 3), while a field without one blank in all that is rare.
 */
export function codeOfOverflow({ rawPacket = Buffer.alloc(0), bytesParsed = 0 }: ParserError): ErrorCode {
  const read = rawPacket.subarray(0, bytesParsed)
  const from = read.lastIndexOf(LF) + 1
  const isTarget = (from > 0 ? REQUEST_LINE : WITHIN_TARGET).test(read.toString('latin1', from))
  return isTarget ? 'target-too-long' : 'header-too-large'
}
