/** Durations and numbers as people read them. */
import type { Calendar } from '../demand.js'

/** Longest first: length in seconds, name, and abbreviation. */
const UNITS = [
  { seconds: 86_400, name: 'day', short: (count: number) => (count === 1 ? 'day' : 'days') },
  { seconds: 3600, name: 'hour', short: () => 'h' },
  { seconds: 60, name: 'minute', short: () => 'min' },
  { seconds: 1, name: 'second', short: () => 's' },
] as const

/** `per second`, `per 90 seconds`, `per 7 days`; for a calendar window `per month (Europe/Berlin)`; `in all`. */
export function perText(ms: number, calendar?: Calendar, lifetime = false): string {
  if (lifetime) return 'in all'
  if (calendar !== undefined) return `per ${calendar.unit} (${calendar.timezone})`
  const seconds = ms / 1000
  const unit = UNITS.find(one => seconds % one.seconds === 0)
  if (unit === undefined) return `per ${seconds} seconds`
  const count = seconds / unit.seconds
  return count === 1 ? `per ${unit.name}` : `per ${count} ${unit.name}s`
}

/** `42 s`, `1 min 15 s`, `23 h 59 min`, `3 days 4 h`: two units at most, rounded up so that the wait suffices. */
export function waitText(seconds: number): string {
  const place = UNITS.findIndex(unit => seconds >= unit.seconds)
  const [unit, smaller] = UNITS.slice(place < 0 ? -1 : place) as [
    (typeof UNITS)[number],
    (typeof UNITS)[number]?,
  ]
  if (smaller === undefined) return `${seconds} s`
  const whole = Math.ceil(seconds / smaller.seconds)
  const ratio = unit.seconds / smaller.seconds
  const [count, rest] = [Math.floor(whole / ratio), whole % ratio]
  // Rounded up to a whole one of the next unit: `1 day`, not `24 h`.
  const next = UNITS[place - 1]
  if (rest === 0 && next !== undefined && count * unit.seconds === next.seconds) return `1 ${next.short(1)}`
  const first = `${count} ${unit.short(count)}`
  return rest === 0 ? first : `${first} ${rest} ${smaller.short(rest)}`
}

/** Whole numbers with their thousands apart: `12,345`. */
export function grouped(number: number): string {
  return Math.round(number).toLocaleString('en-US')
}

/** A share of 1 as per cent, as precise as it is small: `12 %`, `1.2 %`, `0.034 %`. */
export function percent(share: number): string {
  const value = share * 100
  if (value === 0 || value >= 10) return `${Math.round(value)} %`
  return `${Number(value.toPrecision(2))} %`
}
