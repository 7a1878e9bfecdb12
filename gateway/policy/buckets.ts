/** Reads the declared buckets: their patterns, none of which may tie, and what requests of each pattern cost. */

import type { ProjectLimitsPolicy } from '../../config/types.js'
import {
  type BucketPattern,
  bucketWaits,
  type Costs,
  hidesNumbers,
  keyOf,
  patternsOf,
} from '../../config/words/bucket.js'
import { isLifetime, windowsOf } from '../../config/words/quota.js'
import { MODES } from '../../config/words/words.js'
import type { Mode, Rule } from '../types.js'
import { type Fault, readPattern } from './fault.js'
import type { Pattern } from './pattern.js'
import type { BucketRule, BucketTries, Table } from './policy.js'
import { emptyTries } from './tries.js'

/** What is the same for a bucket wherever it has a quota. */
export interface KnownBucket {
  readonly file: string
  readonly patterns: readonly Pattern[]
  readonly written: readonly BucketPattern[]
  readonly costs: Costs
  readonly key: Rule['key']
  readonly hidesNumbers: boolean
  readonly waits: Rule['waits']
}
export type KnownBuckets = ReadonlyMap<string, KnownBucket>

export function readBuckets(files: readonly ProjectLimitsPolicy[], faults: Fault[]): KnownBuckets {
  const buckets = new Map<string, KnownBucket>()
  const modes = modesOf(files)
  const owners: BucketTries = emptyTries()
  for (const { file, document } of files) {
    for (const [name, entry] of Object.entries(document.buckets)) {
      const entries = patternsOf(entry, ['buckets', name])
      const patterns: Pattern[] = []
      for (const { text, path } of entries) {
        const pattern = readPattern(text, file, path, faults)
        if (pattern === undefined) continue
        const ties = [...(modes.get(name) ?? [])].map(mode => owners[mode].add(pattern, name))
        const tie = ties.find(one => one !== undefined)
        if (tie !== undefined) {
          const message = `The pattern "${text}" ties with "${tie.route}" of bucket "${tie.value}": a request must fall into exactly one bucket. Remove one of the two.`
          faults.push({ file, path, message })
        }
        patterns.push(pattern)
      }
      const known = { file, patterns, written: entries, costs: costsOf(entries), key: keyOf(entry) }
      buckets.set(name, { ...known, hidesNumbers: hidesNumbers(entry), waits: bucketWaits(entry) })
    }
  }
  return buckets
}

/** The modes whose tables a bucket may be in: of the file that declares it, and of files that give it quotas. */
function modesOf(files: readonly ProjectLimitsPolicy[]): Map<string, Set<Mode>> {
  const modes = new Map<string, Set<Mode>>()
  for (const { document } of files) {
    const { mode, enforceFor, buckets, limits } = document
    for (const name of [buckets, ...limits.map(({ quotas }) => quotas)].flatMap(Object.keys)) {
      const here = enforceFor === undefined ? [mode] : MODES
      modes.set(name, new Set([...(modes.get(name) ?? []), ...here]))
    }
  }
  return modes
}

/** Empty where each request costs one. */
function costsOf(entries: readonly BucketPattern[]): Costs {
  const fixed = entries.flatMap(({ text, cost, reserved }) =>
    cost > 1 && reserved === undefined ? [[text, cost] as const] : [],
  )
  const settled = entries.flatMap(({ text, reserved }) =>
    reserved === undefined ? [] : [[text, reserved] as const],
  )
  return {
    ...(fixed.length > 0 && { costs: Object.fromEntries(fixed) }),
    ...(settled.length > 0 && { reserved: Object.fromEntries(settled) }),
  }
}

/** Reports costs that exceed a quota: such a request could never pass. */
export function checkCosts(tables: readonly Table[], buckets: KnownBuckets, faults: Fault[]): void {
  for (const [name, { file, written }] of buckets) {
    if (written.every(({ cost }) => cost === 1)) continue
    const least = leastOf(tables.map(({ rules }) => rules.get(name)))
    if (least === undefined) continue
    const { policy, requests, source } = least
    const over = new Map(
      written.filter(({ cost }) => cost > requests).map(one => [JSON.stringify(one.costPath), one]),
    )
    for (const { cost, costPath = [] } of over.values()) {
      const message = `A request that costs ${cost} could never pass: "${policy}" admits ${requests} at ${source.file}:${source.line}. Lower the cost, or raise the quota.`
      faults.push({ file, path: costPath, message })
    }
  }
}

/** Why some requests of the bucket could never pass under the rule, as a sentence; undefined if all could. */
export function tooCostly(rule: BucketRule, { written }: KnownBucket): string | undefined {
  const least = leastOf([rule])
  const cost = Math.max(...written.map(one => one.cost))
  if (least === undefined || cost <= least.requests) return undefined
  return `A request that costs ${cost} could never pass: "${least.policy}" would admit ${least.requests}. Raise the quota.`
}

/** The window that admits the fewest requests. */
function leastOf(rules: readonly (BucketRule | undefined)[]) {
  return rules.flatMap(quotasIn).sort((a, b) => a.requests - b.requests)[0]
}

function quotasIn(rule: BucketRule | undefined) {
  if (rule === undefined || 'unlimited' in rule.config) return []
  const { id, source, config } = rule
  const tried = windowsOf(config.trial ?? {}).map(one => ({ ...one, name: `trial.${one.name}` }))
  // To a lifetime window, credit may add any number.
  const counted = [...windowsOf(config), ...tried].filter(window => !isLifetime(window))
  return counted.map(({ name, requests }) => ({ policy: `${id}.${name}`, requests, source }))
}
