/** The effective limits, as data and as tables: by plan and environment, of one project, and of the endpoint rules. */

import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describeColumns, groupColumns } from '../config/checks/columns.js'
import { isProjectLimits } from '../config/load.js'
import { listed } from '../config/problem.js'
import type { RuleEntry } from '../config/schema/policy.js'
import type { CountedBucket } from '../config/words/bucket.js'
import { ownerOfTrial, trialName } from '../config/words/share.js'
import { waitsOf } from '../config/words/waits.js'
import { columnName, IN_FLIGHT, pluginConfig } from '../config/words/words.js'
import { placeOf } from '../gateway/compiled-rule.js'
import type { Configuration } from '../gateway/configured/load.js'
import {
  costText,
  costTexts,
  quotaText,
  secondsText,
  type VolumetricRule,
  waitText,
  whoseText,
  windowText,
} from '../gateway/explain/settings.js'
import { parsePattern } from '../gateway/policy/pattern.js'
import type { BucketRule, Table } from '../gateway/policy/policy.js'
import { extentOf, sampleRequestsOf } from '../gateway/policy/sample-requests.js'
import { type RuleSettings, withTrial } from '../gateway/policy/shares-and-trials.js'
import type { Mode, Rule } from '../gateway/types.js'
import type { Io } from './io.js'
import { leaseSentence } from './lint/quotas.js'
import { columns, grouped, table, wrap } from './text.js'

/** A bucket with a quota, or with a trial beside one. */
export type BucketLimit = Omit<CountedBucket, 'trial'> &
  Pick<Rule, 'mode' | 'onStoreError'> & {
    /** Absent when each project has a counter. */
    readonly key?: Rule['key']
    readonly bucket: string
    /** Absent when `mode` applies to all projects. */
    readonly enforceFor?: string
    readonly src: string
    /** How long requests wait before they are refused; absent if they do not. */
    readonly wait?: string
    /** What leases may withhold; absent without them. */
    readonly leases?: string
    readonly falls_to?: undefined
    readonly unlimited?: undefined
  }
export interface Unlimited
  extends Pick<BucketLimit, 'bucket' | 'mode' | 'enforceFor' | 'src' | 'leases' | 'falls_to'> {
  readonly unlimited: true
}
/**
 * A bucket without a quota: `falls_to` are the buckets that take its requests; null for requests that nothing limits.
 */
export interface Fallen {
  readonly bucket: string
  readonly falls_to: readonly (string | null)[]
}
/** The limits of plans and environments that have equal ones, or of one project. */
export interface LimitsOf {
  /** Whose limits these are, in words. */
  readonly for: string
  /** Each plan and environment as `plan/environment`. */
  readonly columns: readonly string[]
  readonly buckets: readonly (BucketLimit | Unlimited | Fallen)[]
}

/** The limit of a rule that is not of project limits. */
export interface EndpointLimit {
  readonly rule: string
  readonly kind: string
  readonly mode: Rule['mode']
  /** The percentage of keys for which it is enforced, such as `10%`; absent when `mode` applies to all. */
  readonly enforceFor?: string
  /** Patterns, such as `POST /login`. */
  readonly match: readonly string[]
  readonly key: Rule['key']
  /** In words, such as `100 per 10 s`. */
  readonly limit: string
  /** `file:line`. */
  readonly src: string
}

/** The limits by plan and environment; those with equal limits are grouped. */
export function limitsByColumn(loaded: Configuration): LimitsOf[] {
  const { columns } = loaded.compiled.policy
  const { planWords } = loaded.config
  const texts = new Map<Table | undefined, string>()
  const groups = groupColumns(planWords, column => {
    const table = columns.get(column)
    const text = texts.get(table) ?? JSON.stringify(bucketsIn(loaded, table))
    texts.set(table, text)
    return text
  })
  return [...groups].map(([text, names]) => ({
    for: describeColumns(names, planWords),
    columns: [...names],
    buckets: JSON.parse(text) as (BucketLimit | Unlimited | Fallen)[],
  }))
}

/** The limits of one project; undefined when there is no such project. */
export function limitsOfProject(loaded: Configuration, id: string): LimitsOf | undefined {
  const project = loaded.config.projects.find(one => one.id === id)
  if (project === undefined) return undefined
  const column = columnName(project.plan, project.environment)
  const overridden = Object.keys(project.overrides)
  const suffix = overridden.length === 0 ? '' : `, with its own ${listed(overridden, 'and')}`
  return {
    for: `${id}: ${column}${suffix}`,
    columns: [column],
    buckets: bucketsIn(loaded, loaded.compiled.policy.tableOf(project)),
  }
}

/** The buckets of a table in the order in which they are written. */
function bucketsIn(
  { config, compiled }: Configuration,
  table: Table | undefined,
): (BucketLimit | Unlimited | Fallen)[] {
  const buckets = compiled.policy.buckets.map(bucket => ({
    ...bucket,
    patterns: bucket.patterns.map(parsePattern),
  }))
  const extent = extentOf(buckets.flatMap(({ patterns }) => patterns))
  const limitOf = (rule: BucketRule): BucketLimit | Unlimited => {
    const { id: bucket, mode, share, onStoreError, source, waits } = rule
    const key = isDeepStrictEqual(rule.key, ['project']) ? {} : { key: rule.key }
    const src = placeOf(source)
    const enforceFor = share ? { enforceFor: `${share.percent}%` } : {}
    const written = rule.config
    if ('unlimited' in written) return { bucket, unlimited: true, mode, ...enforceFor, src }
    const { trial: _, ...quota } = written
    const leases = quota.lease ? { leases: leaseSentence(quota, config.gateway) } : {}
    const wait = waits && { wait: waitText(waits) }
    return { bucket, ...quota, ...key, mode, ...enforceFor, onStoreError, ...wait, src, ...leases }
  }
  return buckets.flatMap(({ name: bucket, mode, patterns }): (BucketLimit | Unlimited | Fallen)[] => {
    const rule = table?.rules.get(bucket)
    const trial = table?.trials?.get(bucket)
    if (rule !== undefined) return [limitOf(rule), ...(trial ? [limitOf(trial)] : [])]
    const falls = patterns
      .flatMap(pattern => sampleRequestsOf(pattern, extent))
      .map(({ method, path }) => table?.buckets[mode].find(method, path)?.value ?? null)
    return [{ bucket, falls_to: [...new Set(falls)] }]
  })
}

/** The limits of endpoint rules. */
export function endpointLimits({ config }: Configuration): EndpointLimit[] {
  return config.policies.flatMap(policy => {
    if (isProjectLimits(policy)) return []
    const { file, kind, document } = policy
    return document.rules.flatMap((rule, i) => {
      const { inForce, tried } = withTrial(kind, pluginConfig(rule))
      const { id, mode, enforceFor, match, key } = rule
      const rowOf = (name: string, mode: Mode, settings: RuleSettings, share: number | undefined) => ({
        rule: name,
        kind,
        mode,
        ...(share && { enforceFor: `${share}%` }),
        match,
        key,
        limit: limitText(kind, rule, settings),
        src: `${file}:${config.locate(file, ['rules', i]).line}`,
      })
      const own = rowOf(id, mode, inForce, enforceFor)
      return tried === undefined ? [own] : [own, rowOf(trialName(id), 'report-only', tried, undefined)]
    })
  })
}

/** `1 at a time`, `100 per 10 s, then blocked for 60 s`; for other plugins their settings as JSON. */
function limitText(kind: string, { when, reads }: RuleEntry, own: RuleSettings): string {
  const whose = when === undefined ? '' : `, ${whoseText(when)}`
  return `${spendText(kind, own)}${whose}${reads ? ', reads too' : ''}`
}

function spendText(kind: string, own: RuleSettings): string {
  if (kind === IN_FLIGHT) {
    const waits = waitsOf(own)
    return `${own.max} at a time${waits ? `, others wait ${waitText(waits)}` : ''}`
  }
  if (kind !== 'volumetric') return JSON.stringify(own)
  const flood = own as unknown as VolumetricRule
  const { quota, blockFor } = flood
  const block = blockFor === undefined ? '' : `, then blocked for ${secondsText(blockFor)}`
  return `${quotaText(quota)}${costText(flood)}${block}`
}

export function writeLimits({ for: whom, buckets }: LimitsOf, io: Io): void {
  io.out(`\n${io.style('bold', wrap(whom, io.columns))}\n`)
  io.out(table(BUCKET_COLUMNS, buckets.map(rowOf), io.columns))
  for (const limit of buckets) {
    if (limit.falls_to !== undefined || limit.leases === undefined) continue
    io.out(`${wrap(`${limit.bucket}: ${limit.leases}`, io.columns)}\n`)
  }
}

const BUCKET_COLUMNS = [
  ...columns(['Bucket'], ['per second', 'per minute']),
  ...columns(['Notes', 'Written at']),
]

function rowOf(bucket: BucketLimit | Unlimited | Fallen): string[] {
  if (bucket.falls_to !== undefined) {
    const others = bucket.falls_to.map(other => other ?? 'no limit').join(', ')
    return [bucket.bucket, '-', '-', `falls to ${others}`, '-']
  }
  const { src } = bucket
  if (bucket.unlimited) return [bucket.bucket, '-', '-', unlimitedText(bucket), basename(src)]
  const [second, minute] = [bucket.burst, bucket.sustained].map(requests => {
    return requests === undefined ? '-' : grouped(requests)
  }) as [string, string]
  return [bucket.bucket, second, minute, notesOf(bucket), basename(src)]
}

function unlimitedText({ mode }: Unlimited): string {
  return mode === 'report-only' ? `unlimited, ${mode}` : 'unlimited'
}

/** Whatever differs from the defaults. */
function notesOf(limit: BucketLimit): string {
  const { bucket, key, algorithm, lease, mode, enforceFor, wait, windows = [] } = limit
  const costs = costTexts(limit)
  const isTrial = ownerOfTrial(bucket) !== undefined
  const notes = [
    ...windows.map(windowText),
    costs.length === 0 ? '' : `costs ${costs.join(', ')}`,
    key === undefined ? '' : `by ${key.join(' + ')}`,
    isTrial ? 'trial' : mode === 'report-only' ? mode : '',
    enforceFor === undefined ? '' : `for ${enforceFor} of projects`,
    algorithm === 'sliding-window' ? '' : algorithm,
    lease ? 'lease' : '',
    wait === undefined ? '' : `waits ${wait}`,
  ]
  return notes.filter(Boolean).join(', ') || '-'
}

export function writeEndpointLimits(limits: readonly EndpointLimit[], io: Io): void {
  if (limits.length === 0) return
  io.out(`\n${io.style('bold', 'Endpoint rules, for every project')}\n`)
  const titles = columns(['Rule', 'Limit', 'Counted by', 'Mode', 'Written at'])
  const rows = limits.map(({ rule, limit, key, mode, enforceFor, src }) => [
    rule,
    limit,
    key.join(' + '),
    enforceFor === undefined ? mode : `${mode} for ${enforceFor}`,
    basename(src),
  ])
  io.out(table(titles, rows, io.columns))
}
