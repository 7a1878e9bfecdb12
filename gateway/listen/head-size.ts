/**
 * Refuses heads that are too large, and says whether the target (RFC 9110 section 15.5.15) or the fields (RFC
 * 6585) are the cause.
 */
import { GatewayError } from '../errors.js'
import type { RequestHead } from '../message.js'
import { MAX_HEAD } from './limits.js'

/** Blanks of a request line with its version, and of a field's line; what HTTP/2 sends counts as if written so. */
const LINE_BYTES = '  HTTP/1.1\r\n'.length
const FIELD_BYTES = ': \r\n'.length

/** Refuses a head of more than MAX_HEAD bytes, and names the larger part of it. */
export function checkHeadSize({ method, target, fields: { raw, names } }: RequestHead): void {
  let fields = names.length * FIELD_BYTES
  for (const part of raw) fields += part.length
  const line = method.length + target.length + LINE_BYTES
  if (line + fields > MAX_HEAD) throw new GatewayError(line > fields ? 'target-too-long' : 'header-too-large')
}
