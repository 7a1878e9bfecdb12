/** Rules that are enforced for a share of their keys; for the other keys a report-only copy counts. */
import { isInside } from '../../config/words/rollout.js'
import { compiledRule } from '../compiled-rule.js'
import type { Rule } from '../types.js'

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
  const made = rule.made ?? {}
  made.reporting ??= compiledRule({ ...rule, mode: 'report-only' })
  return made.reporting
}
