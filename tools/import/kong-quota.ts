/** What Kong's rate-limiting plugins count, as quotas of a bucket and as windows of meters (developer.konghq.com). */
import type { Migration } from './migration.js'
import type { WindowQuota } from './rate.js'
import type { Section } from './source.js'

/** One window of a plugin. */
export interface KongWindow {
  /** Its name in `windows`; `second` and `minute` become burst and sustained. */
  readonly name: string
  readonly seconds: number
  readonly requests: number
  /** Kong's days and months are calendar periods in UTC. */
  readonly calendar?: 'day' | 'month'
}

const UNITS: readonly Omit<KongWindow, 'requests'>[] = [
  { name: 'second', seconds: 1 },
  { name: 'minute', seconds: 60 },
  { name: 'hour', seconds: 3600 },
  { name: 'day', seconds: 86_400, calendar: 'day' },
  { name: 'month', seconds: 31 * 86_400, calendar: 'month' },
]
const MOST = 1_000_000_000
const LONGEST = 31 * 86_400
const LONGEST_METER = 86_400

/** The windows of `rate-limiting`, or of `rate-limiting-advanced` with its two lists. */
export function windowsOf(config: Section, into: Migration): KongWindow[] {
  if ('year' in config.node)
    into.leftOut(config.at('year'), 'a limit by year. A window has at most 31 days, or a month.')
  const plain = UNITS.flatMap(unit => {
    const requests = config.number(unit.name)
    return requests === undefined ? [] : { ...unit, requests }
  })
  const sizes = config.texts('window_size').map(Number)
  const listed = config.texts('limit').flatMap((limit, i) => {
    const seconds = sizes[i] ?? 0
    if (Number.isInteger(seconds) && seconds >= 1 && seconds <= LONGEST) {
      return { name: `w${seconds}`, seconds, requests: Number(limit) }
    }
    into.leftOut(config.at('window_size'), `the window of ${sizes[i]} s. A window has from 1 s to 31 days.`)
    return []
  })
  return [...plain, ...listed].filter(({ requests }) => {
    const isQuota = Number.isInteger(requests) && requests >= 1 && requests <= MOST
    if (!isQuota)
      into.leftOut(
        config.at(),
        `a limit of ${requests} requests. A quota is a whole number from 1 to 1,000,000,000.`,
      )
    return isQuota
  })
}

/** All windows together, as the quota of a bucket. */
export function bucketQuota(
  windows: readonly KongWindow[],
  algorithm: 'fixed-window' | 'sliding-window',
): object {
  const longer = windows.filter(({ seconds }) => seconds !== 1 && seconds !== 60)
  return {
    ...written(
      'burst',
      windows.find(({ seconds }) => seconds === 1),
    ),
    ...written(
      'sustained',
      windows.find(({ seconds }) => seconds === 60),
    ),
    ...(longer.length > 0 && {
      windows: longer.map(({ name, seconds, requests, calendar }) => ({
        name,
        requests,
        per: calendar ?? `${seconds}s`,
      })),
    }),
    algorithm,
  }
}

const written = (key: string, window: KongWindow | undefined): object =>
  window === undefined ? {} : { [key]: window.requests }

/** Each window as the quota of a meter; those that a meter cannot have are reported. */
export function meterQuotas(windows: readonly KongWindow[], config: Section, into: Migration): WindowQuota[] {
  return windows.flatMap(({ name, seconds, requests }) => {
    if (seconds <= LONGEST_METER) return { requests, per: `${seconds}s` }
    into.leftOut(
      config.at(),
      `the limit by ${name}. Without the project in its key a rule has a window of at most a day.`,
    )
    return []
  })
}
