/** Lengths of time of Traefik, and the checks of its services. */
import type { Findings } from './findings.js'
import { durationText, LONGEST_TIMEOUT_MS } from './upstreams.js'
import type { Section } from './yaml.js'

const UNITS: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 }
/** A number and its unit in one of Go's durations, such as `1h30m` and `1.5s` (time.ParseDuration). */
const DURATION_PART = /(?<![\d.])(\d+(?:\.\d*)?|\.\d+)(ns|us|ms|s|m|h)/g
const LONGEST_PERIOD = 64

/** A period, which is a number of seconds or one of Go's durations; undefined when it is neither, or zero. */
export function secondsOf(period: string): number | undefined {
  if (period.length > LONGEST_PERIOD) return undefined
  const parts = [...period.matchAll(DURATION_PART)]
  const lengths = parts.map(([, count, unit = '']) => Number(count) * (UNITS[unit] ?? Number.NaN))
  const isDuration = period.replace(DURATION_PART, '') === ''
  const seconds = isDuration ? lengths.reduce((sum, one) => sum + one, 0) : Number(/^\d+$/.exec(period)?.[0])
  return seconds > 0 ? seconds : undefined
}

/** A length of time of a section in milliseconds, if upstreams can have it. */
export function millisecondsIn(section: Section, key: string): number | undefined {
  const ms = Math.round((secondsOf(section.text(key) ?? '') ?? 0) * 1000)
  return ms > 0 && ms <= LONGEST_TIMEOUT_MS ? ms : undefined
}

const CHECK = ['path', 'interval', 'timeout']

/** Checks by GET of a path; others are reported. */
export function healthOf(check: Section, into: Findings): object | undefined {
  const path = check.text('path')
  if (path === undefined) return undefined
  check.others(CHECK, into, 'Checks ask each address for a path by GET.')
  const [every, timeout] = ['interval', 'timeout'].map(key => millisecondsIn(check, key))
  const isSound = /^\/[!"$-~]*$/.test(path) && CHECK.length >= Object.keys(check.node).length
  if (!isSound) {
    into.leftOut(check.at(), 'the checks of this service, which are not the same here.')
    return undefined
  }
  return {
    path,
    ...{ healthy: 1, unhealthy: 1 },
    every: durationText(Math.min(Math.max(every ?? 30_000, 1000), 3_600_000)),
    timeout: durationText(Math.min(Math.max(timeout ?? 5000, 10), 60_000)),
  }
}
