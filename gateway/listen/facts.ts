import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.js'
import type { Facts } from '../types.js'
import { clientAddress, networkOf, type TrustedProxies } from './client.js'
import { getFingerprints } from './fingerprint.js'
import { checkFraming, isAuthority } from './framing.js'
import { checkHeadSize } from './head-size.js'
import { parseTarget } from './target.js'

export interface FactsSettings {
  readonly trusted: TrustedProxies
  /** Lower-case names of the fields in which a trusted hop puts TLS fingerprints. */
  readonly fingerprintHeaders: { readonly ja3: string; readonly ja4: string }
}

const PORT = /:\d*$/
const FINGERPRINT = /^[\x21-\x7e]{1,256}$/

/**
 * Checks a request's head and reads its facts; throws the GatewayError the client should hear.
 * The path of `OPTIONS *` is `*`: the gateway answers it itself.
 */
export function readFacts(req: IncomingMessage, settings: FactsSettings): Facts {
  checkHeadSize(req)
  checkFraming(req)
  const method = req.method as string
  const { path, query, authority } = parseTarget(method, req.url as string)
  if (authority !== undefined && !isAuthority(authority)) throw new GatewayError('bad-host')
  return new RequestFacts(req, settings, method, path, query, authority ?? req.headers.host ?? '')
}

class RequestFacts implements Facts {
  readonly id: string = randomUUID()
  readonly method: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly client: string
  readonly network: string
  readonly trusted: boolean
  readonly upgrade: boolean
  readonly preflight: boolean
  readonly ja3: string | undefined
  readonly ja4: string | undefined
  readonly authenticated: boolean
  /** Truly private, so that facts can be logged without the credentials in the headers. */
  readonly #headers: IncomingMessage['headers']

  constructor(
    req: IncomingMessage,
    settings: FactsSettings,
    method: string,
    path: string,
    query: string,
    authority: string,
  ) {
    this.#headers = req.headers
    this.method = method
    this.path = path
    this.query = query
    this.host = hostOf(authority)
    const peer = req.socket.remoteAddress ?? ''
    const client = clientAddress(peer, this.header('x-forwarded-for'), settings.trusted)
    this.client = client.address
    this.network = networkOf(client.address)
    this.trusted = client.trusted
    this.upgrade = 'upgrade' in req && req.upgrade === true
    this.preflight =
      method === 'OPTIONS' &&
      req.headers.origin !== undefined &&
      req.headers['access-control-request-method'] !== undefined
    // Behind a proxy the TLS that ends here is the proxy's own: only its word about the client counts.
    const seen = getFingerprints(req.socket)
    this.ja3 = client.trusted ? this.#fingerprint(settings.fingerprintHeaders.ja3) : seen?.ja3
    this.ja4 = client.trusted ? this.#fingerprint(settings.fingerprintHeaders.ja4) : seen?.ja4
    this.authenticated = req.headers.authorization !== undefined || holdsSessionCookie(req.headers.cookie)
  }

  header(name: string): string | undefined {
    const value: unknown = this.#headers[name]
    if (typeof value === 'string') return value
    return Array.isArray(value) ? value.join(', ') : undefined
  }

  /** One word, so that a client cannot add its own to the proxy's; bounded, so that a key made of it is bounded too. */
  #fingerprint(name: string): string | undefined {
    const value = this.header(name)
    return value !== undefined && FINGERPRINT.test(value) ? value : undefined
  }
}

/** Lower case, no port, no final dot: `Acme.localhost.:8080` and `acme.localhost` are one host. */
export function hostOf(authority: string): string {
  const host = authority.replace(PORT, '').toLowerCase()
  return host.endsWith('.') ? host.slice(0, -1) : host
}

function holdsSessionCookie(cookies: string | undefined): boolean {
  if (cookies === undefined) return false
  for (const pair of cookies.split(';')) {
    const name = pair.slice(0, pair.indexOf('=') + 1)
    if (name.toLowerCase().includes('session')) return true
  }
  return false
}
