/** How an upstream reads requests, where that bears on what they are matched and counted by. */
import { GatewayError } from '../errors.js'
import type { Facts } from '../types.js'
import { isServedMethod } from './pattern.js'

export interface UpstreamReading {
  /** `refuse` where the upstream cuts parameters off a segment at `;`, or takes `%3B` for it. */
  readonly pathParameters: 'literal' | 'refuse'
  /** Whether the upstream takes letters of either case for the same. */
  readonly caseInsensitivePaths: boolean
  /** The field in which a POST may name the method that the upstream then serves, in small letters. */
  readonly methodOverride?: string | undefined
}

const REFUSED_PARAMETERS =
  'The path holds a ";", plain or escaped, which the service behind this route may read otherwise. Send it without.'

/**
 * The facts as they are matched and counted for an upstream; those of most upstreams are left as they are.
 * Throws `bad-target` on a path, and `bad-request` on an overriding method, that the upstream could read otherwise than
 * the patterns do.
 *
 * @param verified whether an identifier has checked a credential: then the request is `authenticated`, whatever carried it
 */
export function readForUpstream(
  facts: Facts,
  reading: UpstreamReading | undefined,
  verified: boolean,
): Facts {
  const isCredentialNew = verified && !facts.authenticated
  if (reading === undefined) {
    return isCredentialNew ? new FactsAsRead(facts, facts.method, undefined, true) : facts
  }
  if (reading.pathParameters === 'refuse' && /;|%3B/.test(facts.path)) {
    throw new GatewayError('bad-target', { detail: REFUSED_PARAMETERS })
  }
  const method = methodServed(facts, reading.methodOverride)
  const foldedPath = reading.caseInsensitivePaths ? facts.path.toLowerCase() : undefined
  if (foldedPath === undefined && method === facts.method && !isCredentialNew) return facts
  return new FactsAsRead(facts, method, foldedPath, isCredentialNew)
}

/** Only a POST is taken for another method, as the frameworks that do it agree. */
function methodServed(facts: Facts, field: string | undefined): string {
  const named = facts.method === 'POST' && field !== undefined ? facts.header(field) : undefined
  if (named === undefined) return facts.method
  const method = named.toUpperCase()
  // What it would make of any other value, nobody can know.
  if (!isServedMethod(method)) throw new GatewayError('bad-request', { detail: `${field} names no method.` })
  return method
}

/** The same facts but for what the upstream reads otherwise. They are asked, not copied: some are read when they are. */
class FactsAsRead implements Facts {
  readonly method: string
  readonly foldedPath: string | undefined
  readonly #facts: Facts
  readonly #verified: boolean

  constructor(facts: Facts, method: string, foldedPath: string | undefined, verified: boolean) {
    this.#facts = facts
    this.#verified = verified
    this.method = method
    this.foldedPath = foldedPath
  }

  get id(): string {
    return this.#facts.id
  }
  get path(): string {
    return this.#facts.path
  }
  get query(): string {
    return this.#facts.query
  }
  get host(): string {
    return this.#facts.host
  }
  get client(): string {
    return this.#facts.client
  }
  get network(): string {
    return this.#facts.network
  }
  get trusted(): boolean {
    return this.#facts.trusted
  }
  get upgrade(): boolean | undefined {
    return this.#facts.upgrade
  }
  get preflight(): boolean | undefined {
    return this.#facts.preflight
  }
  get ja3(): string | undefined {
    return this.#facts.ja3
  }
  get ja4(): string | undefined {
    return this.#facts.ja4
  }
  get authenticated(): boolean {
    return this.#verified || this.#facts.authenticated
  }

  header(name: string): string | undefined {
    return this.#facts.header(name)
  }
}
