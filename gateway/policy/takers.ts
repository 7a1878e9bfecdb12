/** Which patterns take the requests of another. Pure. */
import type { Pattern } from './pattern.js'
import type { SampleRequest } from './sample-requests.js'
import type { PathTrie } from './trie.js'

/** The patterns that take the sample requests of `pattern`; undefined when it takes one itself. */
export function takersOf<T>(
  samples: readonly SampleRequest[],
  trie: PathTrie<T>,
  pattern: Pattern,
): Set<string> | undefined {
  const takers = new Set<string>()
  for (const { method, path } of samples) {
    const found = trie.find(method, path)
    if (found === undefined || found.route === pattern.text) return undefined
    takers.add(found.route)
  }
  return takers
}

/** `"/a" is`, `each of "/a", "/b" is`. */
export function listTakers(takers: ReadonlySet<string>): string {
  const names = [...takers].map(taker => `"${taker}"`)
  return names.length === 1 ? `${names[0]} is` : `each of ${names.join(', ')} is`
}
