/** Patterns by host: of one host, of every host below a name, and of every host. */
import type { Pattern } from './pattern.js'
import { type Found, PathTrie } from './trie.js'

const WILDCARD = '*'

export class HostTries<T> {
  readonly #everyHost = new PathTrie<T>()
  readonly #exact = new Map<string, PathTrie<T>>()
  /** By what follows the `*`, such as `.acme.test`. */
  readonly #below = new Map<string, PathTrie<T>>()
  /** Length of the longest key of `#below`. */
  #longest = 0

  /**
   * Adds a pattern for `shop.test`, for `*.shop.test` (every host below it, but not itself), or for every host. Returns
   * the one already there when the two are equally specific (a tie), and then adds nothing.
   */
  add(host: string | undefined, pattern: Pattern, value: T): Found<T> | undefined {
    return this.of(host).add(pattern, value)
  }

  /** The patterns that are written for this host. */
  of(host: string | undefined): PathTrie<T> {
    if (host === undefined) return this.#everyHost
    if (!host.startsWith(WILDCARD)) return trieOf(this.#exact, host)
    const suffix = host.slice(WILDCARD.length)
    this.#longest = Math.max(this.#longest, suffix.length)
    return trieOf(this.#below, suffix)
  }

  /** Every host that patterns are written for, as it is written; undefined stands for every host. */
  get hosts(): (string | undefined)[] {
    return [...this.#exact.keys(), ...[...this.#below.keys()].map(suffix => WILDCARD + suffix), undefined]
  }

  /** The most specific pattern of the most specific host that has one for this path. */
  find(host: string, method: string, path: string): Found<T> | undefined {
    return (
      this.#exact.get(host)?.find(method, path) ??
      this.#findBelow(host, method, path) ??
      this.#everyHost.find(method, path)
    )
  }

  /** The longest name first. A client chooses its Host, so what is longer than any name is not looked up. */
  #findBelow(host: string, method: string, path: string): Found<T> | undefined {
    if (this.#longest === 0) return undefined
    let dot = host.indexOf('.', Math.max(1, host.length - this.#longest))
    while (dot !== -1) {
      const found = this.#below.get(host.slice(dot))?.find(method, path)
      if (found !== undefined) return found
      dot = host.indexOf('.', dot + 1)
    }
    return undefined
  }
}

function trieOf<T>(tries: Map<string, PathTrie<T>>, name: string): PathTrie<T> {
  const known = tries.get(name) ?? new PathTrie<T>()
  tries.set(name, known)
  return known
}
