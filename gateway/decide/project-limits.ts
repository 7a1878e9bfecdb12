/** Plugin: a bucket's quota in all its windows, charged all-or-nothing (spec, 'Project rate limits'). */
import { Type } from 'typebox'
import type { BucketConfig } from '../../config/words/bucket.js'
import { type Quota, type QuotaWindow, windowsOf } from '../../config/words/quota.js'
import { definePlugin } from '../plugin.js'
import type { Check, Demand, Rule, Window } from '../types.js'
import type { Windows } from './leases/lease-client.js'
import { longestMs } from './windows/calendar.js'

export const projectLimits = definePlugin({
  name: 'project-limits',
  kind: 'limit',
  schema: Type.Unsafe<BucketConfig>({ type: 'object' }),
  create: () => ({
    applies: ({ config }) => !('unlimited' in config),
    demand: bucketDemand(),
  }),
})

/** True for an unlimited enforced bucket. */
export function isUnlimited({ kind, mode, config }: Rule): boolean {
  return kind === projectLimits.name && mode === 'enforce' && 'unlimited' in (config as BucketConfig)
}

/** The demand of a quota. */
export function demandOf(quota: Quota): Windows {
  const windows = windowsOf(quota).map(window => windowOf(window, quota))
  return { kind: 'windows', windows, lease: quota.lease }
}

const UTC = 'UTC'

function windowOf({ name, requests, per, timezone = UTC, algorithm }: QuotaWindow, quota: Quota): Window {
  if (typeof per === 'number') {
    return { name, quota: requests, ms: per, algorithm: algorithm ?? quota.algorithm, calendar: undefined }
  }
  const calendar = { unit: per, timezone }
  return { name, quota: requests, ms: longestMs(calendar), algorithm: 'fixed-window', calendar }
}

/**
 * Returns one object per rule and cost, over the same windows: equal requests are recognized by identity and share a
 * call.
 */
function bucketDemand(): (check: Check<BucketConfig>) => Demand {
  const demands = new WeakMap<Rule, Windows>()
  const costly = new WeakMap<Rule, Map<number, Windows>>()
  return ({ rule, route }) => {
    const config = rule.config as Exclude<BucketConfig, { unlimited: true }>
    let demand = demands.get(rule)
    if (demand === undefined) {
      demand = demandOf(config)
      demands.set(rule, demand)
    }
    const cost = config.costs?.[route]
    if (cost === undefined) return demand
    const known = costly.get(rule) ?? new Map<number, Windows>()
    const its = known.get(cost) ?? { ...demand, cost }
    costly.set(rule, known.set(cost, its))
    return its
  }
}
