/** Why a request falls into one bucket and not into others that match its path. Pure. */
import type { Condition, Facts, Project } from '../types.js'
import { type Pattern, parsePattern } from './pattern.js'
import { type EndpointRule, isExempt, type Table } from './policy.js'
import { PathTrie } from './trie.js'

export interface PassedBucket {
  readonly bucket: string
  readonly pattern: string
  /** `no-quota`: the bucket is not in the table that counts for this project. */
  readonly why: 'method' | 'less-specific' | 'no-quota'
}

/**
 * Patterns that match the path but did not take the request, each with its reason.
 *
 * @param buckets all buckets, with their patterns
 * @param chosen the pattern that took the request
 */
export function passedBuckets(
  buckets: readonly (readonly [string, readonly string[]])[],
  table: Table | undefined,
  facts: Facts,
  chosen: string | undefined,
): PassedBucket[] {
  const whyNot = (bucket: string, pattern: Pattern) => {
    if (!matches(pattern, facts)) return 'method'
    return table?.rules.has(bucket) ? 'less-specific' : 'no-quota'
  }
  return buckets.flatMap(([bucket, texts]) =>
    texts
      .filter(text => text !== chosen)
      .map(parsePattern)
      .filter(pattern => matches({ ...pattern, method: undefined }, facts))
      .map(pattern => ({ bucket, pattern: pattern.text, why: whyNot(bucket, pattern) })),
  )
}

export interface PassedRule {
  readonly rule: string
  readonly pattern: string
  /** `read`: GET, HEAD and OPTIONS are exempt. `when`: it looks at other requests. */
  readonly why: 'method' | 'read' | 'when'
  /** The condition of `when` that does not hold; null if `when` is not the reason. */
  readonly unmet: Condition['on'] | null
}

/** Endpoint rules that look at the request's path although they did not match, each with its reason. */
export function passedRules(rules: Iterable<EndpointRule>, facts: Facts, project: Project): PassedRule[] {
  const passed: PassedRule[] = []
  for (const { rule, match } of rules) {
    const patterns = match.map(parsePattern)
    const exempt = patterns.find(pattern => matches(pattern, facts))
    const other = patterns.find(pattern => matches({ ...pattern, method: undefined }, facts))
    const { text: pattern } = exempt ?? other ?? {}
    if (pattern === undefined) continue
    const unmet = rule.when?.find(condition => !condition.holds(facts, project))?.on ?? null
    const exemption = isExempt(rule, facts) ? 'read' : 'when'
    const why = exempt === undefined ? 'method' : exemption
    passed.push({ rule: rule.id, pattern, why, unmet: why === 'when' ? unmet : null })
  }
  return passed
}

function matches(pattern: Pattern, facts: Facts): boolean {
  const alone = new PathTrie<true>()
  alone.add(pattern, true)
  return alone.findFor(facts) !== undefined
}
