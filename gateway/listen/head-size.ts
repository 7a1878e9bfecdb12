/**
 * Rejects heads that are too large, and tells whether the target (RFC 9110 section 15.5.15) or the fields (RFC
 * 6585) are the cause.
 */
import { GatewayError } from '../errors.js'
import type { RequestHead } from '../message.js'
import { MAX_FIELDS, MAX_HEAD } from './limits.js'

/** Bytes of a request line and of a field line besides their parts; HTTP/2 requests count as if sent in HTTP/1.1. */
const LINE_BYTES = '  HTTP/1.1\r\n'.length
const FIELD_BYTES = ': \r\n'.length

/** Rejects a head of more than MAX_HEAD bytes, for which the error names the larger part, or MAX_FIELDS fields. */
export function checkHeadSize({ method, target, fields: { raw, names } }: RequestHead): void {
  let fields = names.length * FIELD_BYTES
  for (const part of raw) fields += part.length
  const line = method.length + target.length + LINE_BYTES
  if (names.length > MAX_FIELDS) throw new GatewayError('header-too-large')
  if (line + fields > MAX_HEAD) throw new GatewayError(line > fields ? 'target-too-long' : 'header-too-large')
}
