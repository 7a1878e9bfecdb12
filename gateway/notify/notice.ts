/** The windows of a rule whose use is to be reported, and to whom. */

import type { Config } from '../../config/types.js'
import { type CountedBucket, PROJECT_LIMITS } from '../../config/words/bucket.js'
import type { Notify } from '../../config/words/notify.js'
import { isLifetime, windowsOf } from '../../config/words/quota.js'
import type { Rule } from '../types.js'

/** A window of a rule. */
export interface NoticedWindow {
  /** Null for a rule with only one window, which has no name. */
  readonly name: string | null
  /** Length in ms of a window that has no beginning and no end; undefined for one that begins and ends as a whole. */
  readonly rollingMs: number | undefined
}

export interface Notice extends Notify {
  /** In the order of the readings of an outcome. */
  readonly windows: readonly NoticedWindow[]
}

/** True if a file of the configuration has a `notify`. */
export function notifiesIn({ policies, projects }: Pick<Config, 'policies' | 'projects'>): boolean {
  return [policies, projects].some(holdsNotify)
}

function holdsNotify(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return 'notify' in value || Object.values(value).some(holdsNotify)
}

/** By the rule's config, which the copies of a rule in another mode share. */
const known = new WeakMap<object, Notice | typeof NONE>()
const NONE = null

/** Undefined if nobody wants to know. */
export function noticeOf({ kind, config }: Rule): Notice | undefined {
  if (typeof config !== 'object' || config === null) return undefined
  let notice = known.get(config)
  if (notice === undefined) {
    notice = made(kind, config)
    known.set(config, notice)
  }
  return notice ?? undefined
}

function made(kind: string, config: object): Notice | typeof NONE {
  if (kind === PROJECT_LIMITS) return ofBucket(config as CountedBucket)
  const { notify } = (config as { readonly quota?: { readonly notify?: Notify } }).quota ?? {}
  return kind === 'volumetric' && notify
    ? { ...notify, windows: [{ name: null, rollingMs: undefined }] }
    : NONE
}

/**
 * Use of a lifetime window falls only when credit is added. A project that has asked for nothing for this long is
 * reported again.
 */
const LIFETIME_CLAIM_MS = 31 * 24 * 3_600_000

function ofBucket({ notify, ...quota }: CountedBucket): Notice | typeof NONE {
  if (notify === undefined) return NONE
  const windows = windowsOf(quota).map(window => {
    const { name, per, algorithm = quota.algorithm } = window
    if (isLifetime(window)) return { name, rollingMs: LIFETIME_CLAIM_MS }
    const rolls = typeof per === 'number' && algorithm !== 'fixed-window'
    return { name, rollingMs: rolls ? per : undefined }
  })
  return { ...notify, windows }
}
