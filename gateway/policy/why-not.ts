/** Why a request falls into one bucket, and not into the others that look at its path. Pure. */
import type { Facts } from '../types.js'
import { type Pattern, parsePattern } from './pattern.js'
import type { Table } from './policy.js'
import { PathTrie } from './trie.js'

/** `no-quota`: not in the tables that count for this project. */
export type WhyNot = 'method' | 'no-quota' | 'less-specific'

export interface Passed {
  readonly bucket: string
  readonly pattern: string
  readonly why: WhyNot
}

/**
 * Patterns of the path that did not get the request, each with its reason; those of other paths are left out.
 *
 * @param buckets every bucket there is, with its patterns
 * @param chosen the pattern that got it
 */
export function passedBuckets(
  buckets: Iterable<readonly [string, readonly string[]]>,
  table: Table | undefined,
  facts: Facts,
  chosen: string | undefined,
): Passed[] {
  const passed: Passed[] = []
  for (const [bucket, texts] of buckets) {
    for (const text of texts) {
      const pattern = parsePattern(text)
      if (text === chosen || !matches({ ...pattern, method: undefined }, facts)) continue
      const why = !matches(pattern, facts)
        ? 'method'
        : table?.rules.has(bucket)
          ? 'less-specific'
          : 'no-quota'
      passed.push({ bucket, pattern: text, why })
    }
  }
  return passed
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
