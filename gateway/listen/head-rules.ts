/** What a request's head must say beyond its grammar: a method we serve, one host, nothing we do not understand. */
import { METHODS } from 'node:http'
import { GatewayError } from '../errors.js'
import type { RequestHead } from '../message.js'

const HOST = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)

/** Throws the refusal of a request that is not served, or whose host two servers could read differently. */
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
  // The one expectation there is; an HTTP/1.0 client's is not one (RFC 9110 section 10.1.1).
  const expected = version === '1.0' ? undefined : fields.get('expect')
  if (expected !== undefined && expected.toLowerCase() !== '100-continue') {
    throw new GatewayError('expectation-failed')
  }
}

/** Throws the refusal of a method that is not served: two would be tunnels or echoes (RFC 9110 sections 9.3.6, 9.3.8). */
export function checkMethod(method: string): void {
  if (method === 'TRACE' || method === 'CONNECT') throw new GatewayError('method-not-allowed')
  if (!KNOWN_METHODS.has(method)) throw new GatewayError('method-not-implemented')
}

/** True when `authority` is a plain `host[:port]`. */
export function isAuthority(authority = ''): boolean {
  return HOST.test(authority)
}
