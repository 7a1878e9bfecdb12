/** Tokens that were verified, and what they say, until they expire. Bounded: a token that was forgotten is verified anew. */
import type { Project } from '../../plugin.js'

interface Entry {
  readonly project: Project
  /** In seconds since the epoch, tolerance included. */
  readonly until: number
}

/** Characters of all tokens of one generation. */
const MOST_CHARACTERS = 16 * 1024 * 1024

/**
 * Two generations: what was asked for since the last change of generations is in the younger, and survives the next.
 */
export class VerifiedTokens {
  #young = new Map<string, Entry>()
  #old = new Map<string, Entry>()
  #characters = 0

  /** @param now in seconds since the epoch */
  get(token: string, now: number): Project | undefined {
    const young = this.#young.get(token)
    const entry = young ?? this.#old.get(token)
    if (entry === undefined) return undefined
    if (now >= entry.until) {
      this.#young.delete(token)
      this.#old.delete(token)
      return undefined
    }
    if (young === undefined) this.#add(token, entry)
    return entry.project
  }

  set(token: string, project: Project, until: number): void {
    this.#add(token, { project, until })
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#characters = 0
  }

  #add(token: string, entry: Entry): void {
    if (this.#characters + token.length > MOST_CHARACTERS) {
      this.#old = this.#young
      this.#young = new Map()
      this.#characters = 0
    }
    this.#young.set(token, entry)
    this.#characters += token.length
  }
}
