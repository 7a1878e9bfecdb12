/** What a quota says: its windows, and how they count. Knows only words, so every room may know it. */
import { isDeepStrictEqual } from 'node:util'
import { type Algorithm, type CalendarUnit, UNLIMITED } from './words.js'

/** One window beside the spec's two. */
export interface QuotaWindow {
  readonly name: string
  readonly requests: number
  /** A rolling length in milliseconds, or a period of the calendar. */
  readonly per: number | CalendarUnit
  /** Of the calendar's periods; UTC when left out. */
  readonly timezone?: string
  /** Of a rolling window; that of the quota when left out. */
  readonly algorithm?: Algorithm
}

export interface Quota {
  /** Requests per second. */
  readonly burst?: number
  /** Requests per minute. */
  readonly sustained?: number
  readonly windows?: readonly QuotaWindow[]
  readonly algorithm: Algorithm
  readonly lease: boolean
  readonly trial?: Trial
}

/** A quota on trial beside another; settings it leaves out are those of the other. */
export type Trial = Omit<Partial<Quota>, 'lease' | 'trial'>

export type QuotaEntry = Quota | typeof UNLIMITED
/** What it leaves out stays as in the row. */
export type QuotaOverride = Partial<Quota> | typeof UNLIMITED

/** The most windows that one quota may have, burst and sustained among them. */
export const MOST_WINDOWS = 8

/** How a quota counts when nothing is said. */
const PLAIN: Quota = { algorithm: 'sliding-window', lease: false }

const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** All windows in their order, the spec's two as any other. */
export function windowsOf({ burst, sustained, windows = [] }: Partial<Quota>): readonly QuotaWindow[] {
  if (windows.length === 0 && burst === undefined && sustained === undefined) return windows
  return [
    ...(burst === undefined ? [] : [{ name: 'burst', requests: burst, per: SECOND_MS }]),
    ...(sustained === undefined ? [] : [{ name: 'sustained', requests: sustained, per: MINUTE_MS }]),
    ...windows,
  ]
}

/** A row's quota with what an override says in its place; windows go by their names. */
export function overridden(base: QuotaEntry | undefined, override: QuotaOverride): QuotaEntry {
  if (override === UNLIMITED) return UNLIMITED
  const { trial: tried, ...row } = base === undefined || base === UNLIMITED ? PLAIN : base
  const { trial: own, ...fixed } = override
  const quota = merged(row, fixed)
  const trial = trialUnder(quota, tried, own, fixed)
  return trial === undefined ? quota : { ...quota, trial }
}

function merged<Q extends Partial<Quota>>(row: Q, override: Partial<Quota>): Q {
  const { windows = [] } = override
  const kept = (row.windows ?? []).map(one => windows.find(({ name }) => name === one.name) ?? one)
  const added = windows.filter(({ name }) => !kept.some(one => one.name === name))
  const all = [...kept, ...added]
  return { ...row, ...override, ...(all.length > 0 && { windows: all }) }
}

/**
 * The trial beside an overridden quota: the override's own, or that of the row as if it were in force, when the override
 * would still stand. Undefined when it would try what is in force.
 */
function trialUnder(
  quota: Quota,
  tried: Trial | undefined,
  own: Trial | undefined,
  { lease: _, ...fixed }: Partial<Quota>,
): Trial | undefined {
  const { lease, ...present } = quota
  if (own !== undefined) return merged(present, own)
  const trial = tried && merged({ algorithm: quota.algorithm, ...tried }, fixed)
  return isDeepStrictEqual(trial, present) ? undefined : trial
}

/** Why so many windows are no quota; undefined when they are. */
export function tooMany(quota: Partial<Quota>): string | undefined {
  const count = windowsOf(quota).length
  if (count <= MOST_WINDOWS) return undefined
  return `A quota takes at most ${MOST_WINDOWS} windows, burst and sustained among them; these are ${count}.`
}
