/** How an upstream reads paths, where that bears on what its requests are matched and counted by. */
import { GatewayError } from '../errors.js'
import type { Facts } from '../types.js'

export interface PathReading {
  /** `refuse` where the upstream cuts parameters off a segment at `;`, or takes `%3B` for it. */
  readonly pathParameters: 'literal' | 'refuse'
  /** Whether the upstream takes letters of either case for the same. */
  readonly caseInsensitivePaths: boolean
}

const REFUSED_PARAMETERS =
  'The path holds a ";", plain or escaped, which the service behind this route may read otherwise. Send it without.'

/**
 * The facts as they are matched and counted for an upstream; those of most upstreams are left as they are.
 * Throws `bad-target` on a path that the upstream could read otherwise than the patterns do.
 */
export function readForUpstream(facts: Facts, reading: PathReading | undefined): Facts {
  if (reading === undefined) return facts
  if (reading.pathParameters === 'refuse' && /;|%3B/.test(facts.path)) {
    throw new GatewayError('bad-target', { detail: REFUSED_PARAMETERS })
  }
  if (!reading.caseInsensitivePaths) return facts
  return new FoldedFacts(facts)
}

/** The same facts, with the path in small letters beside. They are asked, not copied: some are read when they are. */
class FoldedFacts implements Facts {
  readonly foldedPath: string
  readonly #facts: Facts

  constructor(facts: Facts) {
    this.#facts = facts
    this.foldedPath = facts.path.toLowerCase()
  }

  get id(): string {
    return this.#facts.id
  }
  get method(): string {
    return this.#facts.method
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
    return this.#facts.authenticated
  }

  header(name: string): string | undefined {
    return this.#facts.header(name)
  }
}
