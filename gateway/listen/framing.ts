import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.js'
import { expectsContinue } from './expect.js'
import { StreamRequest } from './stream-request.js'

const DIGITS = /^\d{1,15}$/
const HOST = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i

/**
 * Refuses every request whose end, host or method two servers could read differently (RFC 9112 sections 3.2,
 * 6.1 and 6.3, RFC 9110 sections 9.3.6 and 9.3.8). Reads the raw fields, because Node joins or drops repeats.
 */
export function checkFraming(req: IncomingMessage): void {
  // Node's parser takes "HTTP/2.0" in a request line for an HTTP/1 message of another version.
  if (req.httpVersionMajor !== 1 && !(req instanceof StreamRequest)) throw new GatewayError('bad-request')
  if (req.method === 'TRACE' || req.method === 'CONNECT') throw new GatewayError('method-not-allowed')

  let hosts = 0
  let lengths = 0
  let codings = 0
  const fields = req.rawHeaders
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    const value = fields[i + 1] as string
    if (name.length === 4 && name.toLowerCase() === 'host') {
      hosts++
      if (!HOST.test(value)) throw new GatewayError('bad-host')
    } else if (name.length === 14 && name.toLowerCase() === 'content-length') {
      lengths++
      if (!DIGITS.test(value)) throw new GatewayError('bad-framing')
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      codings++
      if (value.toLowerCase() !== 'chunked') throw new GatewayError('bad-framing')
    }
  }

  const isOld = req.httpVersion === '1.0'
  if (hosts > 1 || (hosts === 0 && !isOld)) throw new GatewayError('bad-host')
  if (lengths + codings > 1) throw new GatewayError('bad-framing')
  if (codings === 1 && isOld) throw new GatewayError('bad-framing')
  if (!expectsNothingStrange(req)) throw new GatewayError('expectation-failed')
  if ('upgrade' in req && req.upgrade === true) checkUpgrade(req, lengths + codings)
}

/** RFC 9110 section 10.1.1: the one expectation there is; an HTTP/1.0 client's is not one. */
function expectsNothingStrange(req: IncomingMessage): boolean {
  return req.headers.expect === undefined || req.httpVersion === '1.0' || expectsContinue(req)
}

/** True when the request asks for the one protocol we switch to. */
export function asksForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** Only `websocket` by GET without a body: other upgrades (h2c) would be tunnels past every check. */
function checkUpgrade(req: IncomingMessage, framingFields: number): void {
  if (req.method !== 'GET' || !asksForWebSocket(req) || framingFields > 0)
    throw new GatewayError('bad-upgrade')
}

/** True when `authority` is a plain `host[:port]`. */
export function isAuthority(authority: string): boolean {
  return HOST.test(authority)
}
