/**
 * Tokens that were verified, and what they say, until they expire. Bounded, by 32 MiB: a token that was forgotten is
 * verified anew. Tokens must be strings of their own, and not parts of longer ones.
 */
import type { Project } from '../../plugin.js'

interface Entry {
  readonly project: Project
  /** In seconds since the epoch, tolerance included. */
  readonly until: number
}

/** Of one generation. */
const MOST_BYTES = 16 * 1024 * 1024
/** What an entry takes beside its texts: a project in its forms, its place in a map. Each text, beside its characters. */
const [BYTES_OF_ENTRY, BYTES_OF_TEXT] = [1024, 40]

/**
 * Two generations: what was asked for since the last change of generations is in the younger, and survives the next.
 */
export class VerifiedTokens {
  #young = new Map<string, Entry>()
  #old = new Map<string, Entry>()
  #bytes = 0

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
    this.#bytes = 0
  }

  #add(token: string, entry: Entry): void {
    const bytes = bytesOf(token, entry.project)
    if (this.#bytes + bytes > MOST_BYTES) {
      this.#old = this.#young
      this.#young = new Map()
      this.#bytes = 0
    }
    this.#young.set(token, entry)
    this.#bytes += bytes
  }
}

function bytesOf(token: string, { scopes = [] }: Project): number {
  return scopes.reduce((sum, scope) => sum + scope.length + BYTES_OF_TEXT, token.length + BYTES_OF_ENTRY)
}
