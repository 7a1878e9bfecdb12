/** A bucket: the requests that share its counter, and what each costs. Every folder may import it. */
import type { Quota } from './quota.js'
import { mostReserved, type ReservedCost } from './reserve.js'
import { type WaitSettings, type Waits, waitsOf } from './waits.js'
import type { BucketKeyPart, RefuseSetting } from './words.js'

interface CostlyPattern {
  readonly pattern: string
  readonly cost: number
}
export type PatternEntry = string | CostlyPattern

/** A bucket as written in YAML. */
export type BucketEntry =
  | readonly PatternEntry[]
  | (WaitSettings & {
      readonly match: readonly PatternEntry[]
      readonly cost?: number | ReservedCost
      readonly key?: readonly BucketKeyPart[]
      readonly refuse?: RefuseSetting
    })

/** One pattern of a bucket, and where it and its cost are written. */
export interface BucketPattern {
  readonly text: string
  readonly path: readonly (string | number)[]
  /** What a request costs, or may reserve at most. */
  readonly cost: number
  readonly reserved: ReservedCost | undefined
  /** Where the cost of the pattern, or else of its bucket, is written; undefined if neither gives one. */
  readonly costPath: readonly (string | number)[] | undefined
}

/** The quota of a bucket's rule, or a marker that it is unlimited. */
export type BucketConfig = CountedBucket | { readonly unlimited: true }
export type CountedBucket = Quota & Costs

/** True for the rule of an unlimited bucket. */
export function isUnlimited({ kind, config }: { readonly kind: string; readonly config: unknown }): boolean {
  return kind === PROJECT_LIMITS && 'unlimited' in (config as BucketConfig)
}

/** The kind of the policy files that declare buckets, and of their rules. */
export const PROJECT_LIMITS = 'project-limits'

export interface Costs {
  /** Costs by pattern, for requests that cost more than one. */
  readonly costs?: Readonly<Record<string, number>> | undefined
  /** By pattern, for requests whose cost their responses tell. */
  readonly reserved?: Readonly<Record<string, ReservedCost>> | undefined
}

/** The parts of a bucket's key; by default it counts per project. */
export function keyOf(bucket: BucketEntry): readonly BucketKeyPart[] {
  return ('length' in bucket ? undefined : bucket.key) ?? ['project']
}

/** True when clients are not told the numbers of the bucket. */
export function hidesNumbers(bucket: BucketEntry): boolean {
  return !('length' in bucket) && bucket.refuse !== undefined
}

/** How long requests of the bucket may wait; undefined if they are refused at once. */
export function bucketWaits(bucket: BucketEntry): Waits | undefined {
  return 'length' in bucket ? undefined : waitsOf(bucket)
}

/** The patterns of the bucket written at `path`, in their order. */
export function patternsOf(bucket: BucketEntry, path: readonly (string | number)[]): BucketPattern[] {
  const isList = 'length' in bucket
  const { match, cost } = isList ? { match: bucket, cost: undefined } : bucket
  const list = isList ? path : [...path, 'match']
  const usual = cost === undefined ? undefined : [...path, 'cost']
  const reserved = typeof cost === 'object' ? cost : undefined
  const fixed = typeof cost === 'object' ? mostReserved(cost) : (cost ?? 1)
  return match.map((entry, i): BucketPattern => {
    const at = [...list, i]
    if (typeof entry === 'string') return { text: entry, path: at, cost: fixed, reserved, costPath: usual }
    const own = { cost: entry.cost, reserved: undefined, costPath: [...at, 'cost'] }
    return { text: entry.pattern, path: [...at, 'pattern'], ...own }
  })
}
