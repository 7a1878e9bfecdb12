/** A quota: its windows, and how they count. Depends only on the shared words, so every folder may import it. */
import { isDeepStrictEqual } from 'node:util'
import type { Notify } from './notify.js'
import { type Algorithm, type CalendarUnit, LIFETIME, UNLIMITED } from './words.js'

/** One window: the spec's two, burst and sustained, take this form too. */
export interface QuotaWindow {
  readonly name: string
  readonly requests: number
  /** A rolling length in milliseconds, a period of the calendar, or the whole life of the counter. */
  readonly per: number | CalendarUnit | typeof LIFETIME
  /** Time zone of a calendar period. Default: UTC. */
  readonly timezone?: string
  /** Algorithm of a rolling window. Default: that of the quota. */
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
  /** Whom to tell that a window is being used up. */
  readonly notify?: Notify
}

/** A quota on trial beside the one in force; settings it leaves out are taken from that one. */
export type Trial = Omit<Partial<Quota>, 'lease' | 'trial' | 'notify'>

export type QuotaEntry = Quota | typeof UNLIMITED
/** A project's override; what it leaves out stays as in the row. */
export type QuotaOverride = Partial<Quota> | typeof UNLIMITED

/** Largest number of windows in one quota, including burst and sustained. */
export const MOST_WINDOWS = 8

/** The settings of a quota that states none. */
const PLAIN: Quota = { algorithm: 'sliding-window', lease: false }

const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** All windows in order, with burst and sustained as ordinary windows. */
export function windowsOf({ burst, sustained, windows = [] }: Partial<Quota>): readonly QuotaWindow[] {
  if (windows.length === 0 && burst === undefined && sustained === undefined) return windows
  return [
    ...(burst === undefined ? [] : [{ name: 'burst', requests: burst, per: SECOND_MS }]),
    ...(sustained === undefined ? [] : [{ name: 'sustained', requests: sustained, per: MINUTE_MS }]),
    ...windows,
  ]
}

/** A row's quota with the override applied; windows are matched by name. */
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
  const merged = (row.windows ?? []).map(one => windows.find(({ name }) => name === one.name) ?? one)
  const added = windows.filter(({ name }) => !merged.some(one => one.name === name))
  const all = [...merged, ...added]
  return { ...row, ...override, ...(all.length > 0 && { windows: all }) }
}

/**
 * The trial beside an overridden quota: the override's own trial, or else the row's with the override applied to it.
 * Undefined when that would equal the quota in force.
 */
function trialUnder(
  quota: Quota,
  tried: Trial | undefined,
  own: Trial | undefined,
  { lease: _lease, notify: _notify, ...fixed }: Partial<Quota>,
): Trial | undefined {
  const { lease, notify, ...present } = quota
  if (own !== undefined) return merged(present, own)
  const trial = tried && merged({ algorithm: quota.algorithm, ...tried }, fixed)
  return isDeepStrictEqual(trial, present) ? undefined : trial
}

/** True for a window that never begins anew. */
export const isLifetime = ({ per }: QuotaWindow): boolean => per === LIFETIME

/**
 * Why a quota with a lifetime window cannot count like this, as a sentence; undefined if it can. Rows and overrides are
 * checked together, as each may be right by itself.
 *
 * @param key what its bucket counts by
 */
export function lifetimeFault(
  quota: Partial<Quota>,
  key: readonly string[] = ['project'],
): string | undefined {
  const window = windowsOf(quota).find(isLifetime)
  if (window === undefined) return undefined
  if (quota.lease)
    return `Tokens of the lifetime window "${window.name}" cannot be taken in advance: remove "lease: true".`
  if (key.length === 1 && key[0] === 'project') return undefined
  return `The lifetime window "${window.name}" needs a bucket that counts by project alone, as credit is given to a project: this one counts by ${key.join(' and ')}.`
}

/** Why these are too many windows, as a sentence; undefined when they are not. */
export function tooMany(quota: Partial<Quota>): string | undefined {
  const count = windowsOf(quota).length
  if (count <= MOST_WINDOWS) return undefined
  return `A quota takes at most ${MOST_WINDOWS} windows, burst and sustained among them; these are ${count}.`
}
