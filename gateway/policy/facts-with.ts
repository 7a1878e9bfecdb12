/** What is learnt of a request once its project and its upstream are known. */
import type { Facts } from '../types.js'

/**
 * The facts with the path as its upstream folds it, and `authenticated` where a credential was checked, whatever carried
 * it. Those of most requests are left as they are.
 */
export function factsWith(facts: Facts, foldedPath: string | undefined, verified: boolean): Facts {
  if (foldedPath === undefined && (!verified || facts.authenticated)) return facts
  return new MoreFacts(facts, foldedPath, verified)
}

/** The same facts and what is known beside. They are asked, not copied: some are read when they are. */
class MoreFacts implements Facts {
  readonly foldedPath: string | undefined
  readonly #facts: Facts
  readonly #verified: boolean

  constructor(facts: Facts, foldedPath: string | undefined, verified: boolean) {
    this.#facts = facts
    this.foldedPath = foldedPath
    this.#verified = verified
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
    return this.#verified || this.#facts.authenticated
  }

  header(name: string): string | undefined {
    return this.#facts.header(name)
  }
}
