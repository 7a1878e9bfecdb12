/** Plugin: a bucket's quota in all its windows, charged all-or-nothing (spec, 'Project rate limits'). */
import { Type } from 'typebox'
import { type BucketConfig, type CountedBucket, PROJECT_LIMITS } from '../../config/words/bucket.js'
import { type Quota, type QuotaWindow, windowsOf } from '../../config/words/quota.js'
import { LIFETIME } from '../../config/words/words.js'
import { compiledDemand, ruleDemand } from '../compiled-rule.js'
import type { Demand, Window } from '../demand.js'
import { definePlugin } from '../plugin.js'
import type { Check } from '../types.js'
import type { Windows } from './leases/lease-client.js'
import { longestMs } from './windows/calendar.js'
import { LIFETIME_MS } from './windows/lifetime-window.js'

export const projectLimits = definePlugin({
  name: PROJECT_LIMITS,
  kind: 'limit',
  schema: Type.Unsafe<BucketConfig>({ type: 'object' }),
  create: () => ({
    applies: ({ config }) => !('unlimited' in config),
    // An unlimited bucket does not apply.
    demand: check => bucketDemand(check as Check<CountedBucket>),
  }),
})

/** The demand of a quota. */
export function demandOf(quota: Quota): Windows {
  const windows = windowsOf(quota).map(window => windowOf(window, quota))
  return compiledDemand({ kind: 'windows', windows, lease: quota.lease })
}

/** Costs of a rule whose demands are kept: clients may choose what they reserve. */
const MOST_COSTS = 256

const UTC = 'UTC'

function windowOf({ name, requests, per, timezone = UTC, algorithm }: QuotaWindow, quota: Quota): Window {
  if (typeof per === 'number') {
    return { name, quota: requests, ms: per, algorithm: algorithm ?? quota.algorithm, calendar: undefined }
  }
  if (per === LIFETIME) {
    return { name, quota: requests, ms: LIFETIME_MS, algorithm: 'fixed-window', lifetime: true }
  }
  const calendar = { unit: per, timezone }
  return { name, quota: requests, ms: longestMs(calendar), algorithm: 'fixed-window', calendar }
}

const demandOfRule = ruleDemand<CountedBucket, Windows>(demandOf)

/** One object per rule and cost, over the same windows. */
function bucketDemand(check: Check<CountedBucket>): Demand {
  const { config, made = {} } = check.rule
  const demand = demandOfRule(check)
  const cost = (check.reserve ?? config.costs?.[check.route] ?? 1) * (check.calls ?? 1)
  if (cost === 1) return demand
  made.demandsByCost ??= new Map()
  const known = made.demandsByCost.get(cost)
  if (known !== undefined) return known
  const costly = compiledDemand({ ...demand, cost })
  if (made.demandsByCost.size < MOST_COSTS) made.demandsByCost.set(cost, costly)
  return costly
}
