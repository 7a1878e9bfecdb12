/** How an upstream interprets requests, where that affects matching and counting. */
import { GatewayError } from '../errors.js'
import type { Facts } from '../types.js'
import { isServedMethod } from './pattern.js'

export interface UpstreamReading {
  /** `refuse` if the upstream cuts parameters off a segment at `;`, or treats `%3B` as `;`. */
  readonly pathParameters: 'literal' | 'refuse'
  /** Whether the upstream ignores the letter case of paths. */
  readonly caseInsensitivePaths: boolean
  /** The field, in lowercase, in which a POST may name the method that the upstream then serves. */
  readonly methodOverride?: string | undefined
}

/**
 * How paths are read that the gateway answers itself: whatever their letter case if any upstream ignores it, because what
 * the gateway answers must not be reached at an upstream by another spelling. Undefined if they are taken as they are.
 */
export function ownReading(readings: ReadonlyMap<string, UpstreamReading>): UpstreamReading | undefined {
  const isAny = [...readings.values()].some(({ caseInsensitivePaths }) => caseInsensitivePaths)
  return isAny ? { pathParameters: 'literal', caseInsensitivePaths: true } : undefined
}

const REFUSED_PARAMETERS =
  'The path contains a ";", plain or escaped, which the service behind this route may read differently. Send it without.'

/** The facts that requests are matched and counted by. */
export type AsRead = Pick<Facts, 'method' | 'foldedPath'>

/**
 * Method and path as they are matched and counted for an upstream; unchanged for most upstreams.
 * Throws `bad-target` on a path, and `bad-request` on an overriding method, that the upstream could read otherwise than
 * the patterns do.
 */
export function readForUpstream(facts: Facts, reading: UpstreamReading | undefined): AsRead {
  if (reading === undefined) return facts
  if (reading.pathParameters === 'refuse' && /;|%3B/.test(facts.path)) {
    throw new GatewayError('bad-target', { detail: REFUSED_PARAMETERS })
  }
  const foldedPath = reading.caseInsensitivePaths ? facts.path.toLowerCase() : undefined
  return { method: methodServed(facts, reading.methodOverride), foldedPath }
}

/**
 * The method that a POST names in this field, in upper case. Only a POST is treated as another method: frameworks that
 * support this agree on that.
 */
export function overridingMethod(
  facts: Pick<Facts, 'method' | 'header'>,
  field: string | undefined,
): string | undefined {
  return facts.method === 'POST' && field !== undefined ? facts.header(field)?.toUpperCase() : undefined
}

function methodServed(facts: Facts, field: string | undefined): string {
  const method = overridingMethod(facts, field)
  if (method === undefined) return facts.method
  // How the upstream would treat any other value is unknown.
  if (!isServedMethod(method)) throw new GatewayError('bad-request', { detail: `${field} names no method.` })
  return method
}

/**
 * The facts as the upstream reads them, and `authenticated` if a credential was checked, whatever carried it. Returns
 * `facts` itself if nothing differs, as for most requests.
 */
export function factsWith(facts: Facts, read: AsRead, verified: boolean): Facts {
  const { method, foldedPath } = read
  if (method === facts.method && foldedPath === undefined && (!verified || facts.authenticated)) return facts
  return new MoreFacts(facts, read, verified)
}

/** The same facts with additions. Delegates to them instead of copying, because some are computed only when read. */
class MoreFacts implements Facts {
  readonly method: string
  readonly foldedPath: string | undefined
  readonly #facts: Facts
  readonly #verified: boolean

  constructor(facts: Facts, { method, foldedPath }: AsRead, verified: boolean) {
    this.#facts = facts
    this.method = method
    this.foldedPath = foldedPath
    this.#verified = verified
  }

  get id(): string {
    return this.#facts.id
  }
  get path(): string {
    return this.#facts.path
  }
  get speltPath(): string | undefined {
    return this.#facts.speltPath
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
  get certificate(): Facts['certificate'] {
    return this.#facts.certificate
  }
  get authenticated(): boolean {
    return this.#verified || this.#facts.authenticated
  }

  header(name: string): string | undefined {
    return this.#facts.header(name)
  }
}
