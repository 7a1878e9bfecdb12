/** Why a request falls into one bucket and not into others that match its path. Pure. */

import { type Pattern, parsePattern } from '../policy/pattern.js'
import { type EndpointRule, isExempt, type Table } from '../policy/policy.js'
import { PathTrie } from '../policy/trie.js'
import type { Facts, Project } from '../types.js'
import type { PassedBucket, PassedRule } from './explanation.js'

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
