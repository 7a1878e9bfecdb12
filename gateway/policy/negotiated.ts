/**
 * Negotiated limits: quotas of one project, written in projects.yaml or set on the admin port, laid over the table that
 * counts for its plan and environment.
 */
import type { ProjectLimitsPolicy } from '../../config/types.js'
import { type BucketConfig, PROJECT_LIMITS } from '../../config/words/bucket.js'
import {
  lifetimeFault,
  overridden,
  type QuotaEntry,
  type QuotaOverride,
  tooMany,
  windowsOf,
} from '../../config/words/quota.js'
import { UNLIMITED } from '../../config/words/words.js'
import { compiledRule } from '../compiled-rule.js'
import type { Rule, Source } from '../types.js'
import { type KnownBucket, type KnownBuckets, tooCostly } from './buckets.js'
import { onStoreErrorIn, type PolicyConfig, projectLimitsIn } from './documents.js'
import { Overlay } from './overlay.js'
import type { BucketRule, Table } from './policy.js'
import { shareOf } from './shares-and-trials.js'
import { emptyTries, type Tries } from './tries.js'

/** A quota of a project for one bucket; what it leaves out stays as in the table below. */
export interface NegotiatedLimit {
  readonly bucket: string
  readonly quota: QuotaOverride
  readonly source: Source
}

/** For a plan and environment that no row covers, which is allowed while nothing is enforced. */
export const NO_LIMITS: Table = { rules: new Map(), buckets: emptyTries() }

/** Stands for a rule that is not there. */
const NONE = {}

export class NegotiatedLimits {
  readonly tries: Tries
  readonly #config: PolicyConfig
  readonly #buckets: KnownBuckets
  readonly #files: readonly ProjectLimitsPolicy[]
  /** A limit set on the admin port keeps its rule, and with it its leases, while others come and go. */
  readonly #rules = new WeakMap<NegotiatedLimit, WeakMap<object, BucketRule>>()

  constructor(config: PolicyConfig, buckets: KnownBuckets, tries: Tries) {
    this.tries = tries
    this.#config = config
    this.#buckets = buckets
    this.#files = projectLimitsIn(config)
  }

  get buckets(): ReadonlySet<string> {
    return new Set(this.#buckets.keys())
  }

  /** The table with these limits, each of another bucket, laid over it. Adds neither trials nor shares. */
  over(base: Table, limits: readonly NegotiatedLimit[]): Table {
    const rules = new Overlay(base.rules)
    for (const limit of limits) {
      const rule = this.#ruleOf(limit, base)
      if (rule !== undefined) rules.set(limit.bucket, rule)
    }
    return { rules, buckets: this.tries.over(base, rules) }
  }

  /** Why the limit is not valid over this table, as a sentence; undefined if it is. */
  fault({ bucket, quota }: NegotiatedLimit, base: Table, column: string): string | undefined {
    const whole = overridden(quotaOf(base.rules.get(bucket)?.config), quota)
    if (whole === UNLIMITED) return undefined
    if (windowsOf(whole).length > 0)
      return tooMany(whole) ?? lifetimeFault(whole, this.#buckets.get(bucket)?.key)
    return `Bucket "${bucket}" has no quota for ${column}, so an override must give a window: burst, sustained or windows.`
  }

  /**
   * The same for a limit of the admin port, which the checks of the files have not seen: its bucket may be unknown, and
   * no request may cost more than it admits.
   */
  faultForNow(limit: NegotiatedLimit, base: Table, column: string): string | undefined {
    const bucket = this.#buckets.get(limit.bucket)
    if (bucket === undefined) return `No bucket is called "${limit.bucket}" now.`
    const fault = this.fault(limit, base, column)
    const rule = fault === undefined ? this.#ruleOf(limit, base) : undefined
    return fault ?? (rule && tooCostly(rule, bucket))
  }

  #ruleOf(limit: NegotiatedLimit, base: Table): BucketRule | undefined {
    const { bucket, quota, source } = limit
    const below = base.rules.get(bucket)
    const known = this.#rules.get(limit) ?? new WeakMap<object, BucketRule>()
    this.#rules.set(limit, known)
    const present = known.get(below ?? NONE)
    if (present !== undefined) return present
    const declared = this.#files.find(({ document }) => Object.hasOwn(document.buckets, bucket))
    const terms = below ?? (declared && termsOf(declared.document, this.#config))
    if (terms === undefined) return undefined
    const whole = overridden(quotaOf(below?.config), quota)
    const rule = bucketRule(bucket, whole, this.#buckets.get(bucket), terms, source)
    known.set(below ?? NONE, rule)
    return rule
  }
}

function quotaOf(config: BucketConfig | undefined): QuotaEntry | undefined {
  if (config === undefined) return undefined
  if ('unlimited' in config) return UNLIMITED
  const { costs, reserved, ...quota } = config
  return quota
}

/** What a file of project limits says once for all of its rules. */
type Terms = Pick<Rule, 'mode' | 'share' | 'onStoreError'>

export function termsOf(
  { mode, enforceFor, onStoreError }: ProjectLimitsPolicy['document'],
  config: PolicyConfig,
): Terms {
  return { mode, share: shareOf(enforceFor, 'projects'), onStoreError: onStoreErrorIn(config, onStoreError) }
}

/** The rule of a bucket with a quota. */
export function bucketRule(
  id: string,
  quota: QuotaEntry,
  bucket: KnownBucket | undefined,
  { mode, share, onStoreError }: Terms,
  source: Source,
): BucketRule {
  return compiledRule({
    id,
    kind: PROJECT_LIMITS,
    mode,
    key: bucket?.key ?? ['project'],
    missing: 'skip',
    onStoreError,
    share,
    config: configOf(quota, bucket),
    source,
    hidesNumbers: bucket?.hidesNumbers,
    waits: bucket?.waits,
  })
}

function configOf(quota: QuotaEntry, bucket: KnownBucket | undefined): BucketConfig {
  if (quota === UNLIMITED) return { unlimited: true }
  return { ...quota, ...bucket?.costs }
}
