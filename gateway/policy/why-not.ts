/** Why a request falls into one bucket, and not into the others that look at its path. Pure. */
import type { Facts } from '../types.js'
import { type Pattern, parsePattern } from './pattern.js'
import type { Table } from './policy.js'
import { PathTrie } from './trie.js'

/**
 * Patterns of the path that did not get the request, each with its reason; those of other paths are left out.
 *
 * @param buckets every bucket there is, with its patterns
 * @param chosen the pattern that got it
 */
export function passedBuckets(
  buckets: readonly (readonly [string, readonly string[]])[],
  table: Table | undefined,
  facts: Facts,
  chosen: string | undefined,
) {
  const whyNot = (bucket: string, pattern: Pattern) => {
    if (!matches(pattern, facts)) return 'method'
    // Not in the tables that count for this project.
    return table?.rules.has(bucket) ? 'less-specific' : 'no-quota'
  }
  return buckets.flatMap(([bucket, texts]) =>
    texts
      .filter(text => text !== chosen)
      .map(parsePattern)
      .filter(pattern => matches({ ...pattern, method: undefined }, facts))
      .map(pattern => ({ bucket, pattern: pattern.text, why: whyNot(bucket, pattern) }) as const),
  )
}

export interface PassedRule {
  readonly rule: string
  readonly pattern: string
  /** `read`: GET, HEAD and OPTIONS are exempt. */
  readonly why: 'method' | 'read'
}

/** Endpoint rules that look at the request's path although they did not match, each with its reason. */
export function passedRules(
  rules: Iterable<{ readonly id: string; readonly match: readonly string[] }>,
  facts: Facts,
): PassedRule[] {
  const passed: PassedRule[] = []
  for (const { id, match } of rules) {
    const patterns = match.map(parsePattern)
    const exempt = patterns.find(pattern => matches(pattern, facts))
    const other = patterns.find(pattern => matches({ ...pattern, method: undefined }, facts))
    if (exempt !== undefined) passed.push({ rule: id, pattern: exempt.text, why: 'read' })
    else if (other !== undefined) passed.push({ rule: id, pattern: other.text, why: 'method' })
  }
  return passed
}

/** Whether the pattern matches by itself. */
function matches(pattern: Pattern, facts: Facts): boolean {
  const alone = new PathTrie<true>()
  alone.add(pattern, true)
  return alone.findFor(facts) !== undefined
}
