/** The answer at `quotaPath`: what its caller has used of its quotas. Nothing is charged. */
import { isUnlimited } from '../../config/words/bucket.js'
import type { Counters } from '../decide/dry-run.js'
import { seconds } from '../forward/fields.js'
import { isExempt } from '../pipeline/access.js'
import type { Routed } from '../pipeline/enter.js'
import type { BucketRule, Policy } from '../policy/policy.js'
import type { Reading } from '../verdict.js'
import { inTurns, lookAt } from './counters.js'

/** A bucket with a limit has windows. */
interface OwnBucket {
  readonly bucket: string
  readonly unlimited?: true
  readonly windows?: readonly OwnWindow[]
}

/** Null where no store can say it. */
interface OwnWindow {
  /** Its name, as in the policy `BUCKET.WINDOW` of responses. */
  readonly window: string
  /** As it is in force: while Redis is away, this gateway's share of it. */
  readonly quota: number
  readonly used: number | null
  readonly left: number | null
  /** Seconds until more of it is left; 0 if nothing is used; null for a lifetime window, to which only credit adds. */
  readonly resets: number | null
}

/** Says no more than responses do: of the enforced buckets, by which the caller's own requests are counted. */
export async function ownQuota(routed: Routed, policy: Policy, counters: Counters): Promise<object> {
  const { id, plan, environment } = routed.project
  const rules = [...(policy.tableOf(routed.project)?.rules.values() ?? [])]
  const buckets = await inTurns(rules, rule => ownBucket(rule, routed, counters))
  return { project: id, plan, environment, buckets: buckets.filter(one => one !== undefined) }
}

/** Parts of a key that are found in bodies. */
const BODY_PARTS: readonly string[] = ['json-rpc', 'email-or-flow']

/** Undefined for a bucket that hides its numbers or is not enforced for this caller, or whose counter this request cannot name. */
async function ownBucket(
  rule: BucketRule,
  { facts, project, ruling }: Routed,
  counters: Counters,
): Promise<OwnBucket | undefined> {
  if (rule.hidesNumbers) return undefined
  // What is in the body of other requests is not known here.
  if (rule.mode !== 'enforce' || rule.key.some(part => BODY_PARTS.includes(part))) return undefined
  if (isUnlimited(rule) || isExempt(ruling)) return { bucket: rule.id, unlimited: true }
  const matched = { rule, route: '' }
  const question = counters.questions.of(matched, { facts, project, matched: [matched] }, 0)
  if (question === 'skip' || !('demand' in question)) return undefined
  const { readings } = await lookAt(question, counters)
  return { bucket: rule.id, windows: readings.map(reading => ownWindow(rule, reading)) }
}

function ownWindow({ id }: BucketRule, { policy, quota, used, left, resetMs, lifetime }: Reading): OwnWindow {
  const window = policy.slice(id.length + 1)
  if (used === undefined) return { window, quota, used: null, left: null, resets: null }
  const resets = lifetime ? null : used === 0 ? 0 : seconds(resetMs)
  return { window, quota, used: Math.min(used, quota), left: left ?? 0, resets }
}
