import { GatewayError } from '../errors.js'
import type { Fields, Fingerprints, RequestHead } from '../message.js'
import type { ClientCertificate, Facts } from '../types.js'
import { clientAddress, networkOf, type TrustedProxies } from './client.js'
import { checkHead, checkHeadSize, isAuthority } from './head-rules.js'
import { parseTarget, type Target } from './target.js'

export interface FactsSettings {
  readonly trusted: TrustedProxies
  /** Lower-case names of the fields in which a trusted hop puts TLS fingerprints. */
  readonly fingerprintHeaders: { readonly ja3: string; readonly ja4: string }
  /** The name of the credential that the fields of a request contain. */
  readonly credentialIn: (fields: Fields) => string | undefined
}

const PORT = /:\d*$/
const FINGERPRINT = /^[\x21-\x7e]{1,256}$/

/**
 * Checks a request's head and reads its facts; throws the GatewayError to send to the client.
 * The path of `OPTIONS *` is `*`: the gateway answers it itself.
 */
export function readFacts(head: RequestHead, settings: FactsSettings): Facts {
  checkHeadSize(head)
  checkHead(head)
  const target = parseTarget(head.method, head.target)
  if (target.authority !== undefined && !isAuthority(target.authority)) throw new GatewayError('bad-host')
  return new RequestFacts(head, settings, target)
}

/** Facts that rules rarely ask for are read on demand. */
class RequestFacts implements Facts {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly speltPath: string
  readonly query: string
  readonly host: string
  readonly client: string
  readonly trusted: boolean
  readonly upgrade: boolean
  /** Truly private, so that facts can be logged without the credentials in the fields. */
  readonly #fields: Fields
  readonly #seen: Partial<Fingerprints> | undefined
  readonly certificate: ClientCertificate | undefined
  readonly #settings: FactsSettings
  #network: string | undefined

  constructor(head: RequestHead, settings: FactsSettings, { path, spelt, query, authority }: Target) {
    const { fields, peer } = head
    this.#fields = fields
    this.#seen = peer.fingerprints
    this.certificate = peer.certificate
    this.#settings = settings
    this.id = head.id
    this.method = head.method
    this.path = path
    this.speltPath = spelt
    this.query = query
    this.host = hostOf(authority ?? fields.get('host') ?? '')
    const { trusted } = settings
    const hops = trusted.empty ? undefined : fields.get('x-forwarded-for')
    const client = clientAddress(peer.address, hops, trusted)
    this.client = client.address
    this.trusted = client.trusted
    this.upgrade = head.upgrade
  }

  get network(): string {
    this.#network ??= networkOf(this.client)
    return this.#network
  }

  get preflight(): boolean {
    return (
      this.method === 'OPTIONS' &&
      this.#fields.has('origin') &&
      this.#fields.has('access-control-request-method')
    )
  }

  // Behind a proxy, the TLS connection is the proxy's own, so only the field it sends describes the client.
  get ja3(): string | undefined {
    return this.trusted ? this.#fingerprint(this.#settings.fingerprintHeaders.ja3) : this.#seen?.ja3
  }

  get ja4(): string | undefined {
    return this.trusted ? this.#fingerprint(this.#settings.fingerprintHeaders.ja4) : this.#seen?.ja4
  }

  get authenticated(): boolean {
    return this.#settings.credentialIn(this.#fields) !== undefined
  }

  header(name: string): string | undefined {
    return this.#fields.get(name)
  }

  /** One word, so that a client cannot add its own to the proxy's; limited in length, as keys are made of it. */
  #fingerprint(name: string): string | undefined {
    const value = this.#fields.get(name)
    return value !== undefined && FINGERPRINT.test(value) ? value : undefined
  }
}

/** Lower case, no port, no final dot: `Acme.localhost.:8080` and `acme.localhost` are one host. */
export function hostOf(authority: string): string {
  const host = authority.replace(PORT, '').toLowerCase()
  return host.endsWith('.') ? host.slice(0, -1) : host
}
