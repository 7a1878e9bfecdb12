/** The message that a window's use has reached a threshold. */
import { createHash } from 'node:crypto'
import { PROJECT_LIMITS } from '../../config/words/bucket.js'
import type { Project, Rule } from '../types.js'
import type { Reading } from '../verdict.js'
import type { Notice } from './notice.js'
import type { Notification } from './notifications.js'

/** How a project and a counter key appear outside the gateway, as in decision records. */
export interface Shown {
  project(project: Project): string
  hash(text: string): string
}

export interface Crossing {
  readonly rule: Rule
  readonly key: string
  readonly reading: Reading
  /** Name of the window; null if it has none. */
  readonly window: string | null
  /** The threshold. */
  readonly percent: number
  readonly project: Project
  readonly notice: Notice
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** The call for a crossing. Whose project it is, is only said where each project is counted by itself. */
export function notificationOf(crossing: Crossing, shown: Shown): Notification {
  const { rule, key, reading, window, percent, notice, now } = crossing
  const { quota, used = 0, left = 0, resetMs, lifetime } = reading
  // To the second: `now` is a little later than the time that `resetMs` counts from.
  const resets = lifetime ? null : new Date(Math.round((now + resetMs) / 1000) * 1000).toISOString()
  const hashedKey = shown.hash(key)
  const id = idOf([hashedKey, window, percent, reading.calendar ? minuteOf(now + resetMs) : now])
  const body = {
    type: 'quota.threshold',
    id,
    ...whoseOf(crossing, shown),
    [rule.kind === PROJECT_LIMITS ? 'bucket' : 'rule']: rule.id,
    ...(isByProject(rule) ? {} : { key: hashedKey }),
    mode: rule.mode,
    window,
    threshold: percent,
    ...{ quota, used, left, resets },
    at: new Date(now).toISOString(),
  }
  return { id, url: notice.url.reveal(), secret: notice.secret.reveal(), body: JSON.stringify(body) }
}

function whoseOf({ rule, project }: Crossing, shown: Shown) {
  if (!rule.key.includes('project')) return { project: null, plan: null, environment: null }
  const { plan, environment } = project
  return { project: shown.project(project), plan, environment }
}

function isByProject({ key }: Rule): boolean {
  return key.length === 1 && key[0] === 'project'
}

/** Calendar periods end at whole minutes: so all gateways get the same number, though their clocks differ a little. */
export function minuteOf(ms: number): number {
  return Math.round(ms / 60_000)
}

const idOf = (parts: readonly unknown[]): string =>
  `ntf_${createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)}`
