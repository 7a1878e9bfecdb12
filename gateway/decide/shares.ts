/** Rules that are enforced for a share of their keys; for the other keys a report-only copy counts. */
import { isInside } from '../../config/rollout.js'
import type { Rule } from '../types.js'

/** One copy per rule, so that equal requests are recognized as equal. */
const reporting = new WeakMap<Rule, Rule>()

/**
 * The rule as it stands for a key. Who lacks a part of the key is inside no share: such requests are all alike, and refusing
 * them all at once is what a share is there to avoid.
 *
 * @param key the counter key under the rule as it is written
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
