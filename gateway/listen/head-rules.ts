/** Rules for a request head beyond its grammar: its size, a supported method, exactly one host, no unknown expectation. */
import { METHODS } from 'node:http'
import { GatewayError } from '../errors.js'
import type { RequestHead } from '../message.js'
import { MAX_FIELDS, MAX_HEAD } from './limits.js'

/** A name has no empty label (RFC 1034 section 3.1), so that `shop.test..` is no other host than `shop.test`. */
const HOST = /^(?:\[[0-9a-f:.]+\]|[\w-]+(?:\.[\w-]+)*\.?)(?::\d{0,5})?$/i
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)

/** Throws if the request is not served, or if its host is missing or ambiguous. */
export function checkHead({ method, version, fields }: RequestHead): void {
  checkMethod(method)
  // RFC 9112 section 3.2.
  const { raw, names } = fields
  const host = names.indexOf('host')
  if (
    host === -1
      ? version !== '1.0'
      : names.indexOf('host', host + 1) !== -1 || !isAuthority(raw[2 * host + 1])
  ) {
    throw new GatewayError('bad-host')
  }
  // 100-continue is the only expectation defined, and in HTTP/1.0 it is ignored (RFC 9110 section 10.1.1).
  const expected = version === '1.0' ? undefined : fields.get('expect')
  if (expected !== undefined && expected.toLowerCase() !== '100-continue') {
    throw new GatewayError('expectation-failed')
  }
}

/** Throws for a method that is not served, such as CONNECT (a tunnel) and TRACE (an echo; RFC 9110 section 9.3). */
export function checkMethod(method: string): void {
  if (method === 'TRACE' || method === 'CONNECT') throw new GatewayError('method-not-allowed')
  if (!KNOWN_METHODS.has(method)) throw new GatewayError('method-not-implemented')
}

/** True when `authority` is a plain `host[:port]`. */
export function isAuthority(authority = ''): boolean {
  return HOST.test(authority)
}

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
