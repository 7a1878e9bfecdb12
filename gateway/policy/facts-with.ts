/** Facts of a request that depend on its project and upstream. */
import type { Facts } from '../types.js'
import type { AsRead } from './upstream-reading.js'

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
