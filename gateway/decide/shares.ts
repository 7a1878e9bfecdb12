/** Rules that are enforced for a share of their keys; for the other keys a report-only copy counts. */
import { isInside } from '../../config/words/rollout.js'
import type { Rule } from '../types.js'

/** One copy per rule, so that equal requests are recognized as equal. */
const reporting = new WeakMap<Rule, Rule>()

/**
 * The rule as it applies to a key. Requests that lack a part of the key are in no share: they are all alike, and a
 * share is there to avoid refusing all of them at once.
 *
 * @param key the counter key under the rule as written
 */
export function ruleFor(rule: Rule, key: string | undefined): Rule {
  const { share, mode } = rule
  if (share?.of !== 'keys' || mode !== 'enforce') return rule
  if (key !== undefined && isInside(share.percent, key)) return rule
  let other = reporting.get(rule)
  if (other === undefined) {
    other = { ...rule, mode: 'report-only' }
    reporting.set(rule, other)
  }
  return other
}
