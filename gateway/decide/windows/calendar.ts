/** Calendar periods by the clock of a time zone: when they begin and end, in milliseconds since the epoch. */
import type { Calendar, Demand } from '../../demand.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** No time zone is further from UTC, in either direction. */
const FARTHEST_MS = 15 * HOUR_MS
/** The most that a clock change has ever added to a day. */
const SET_BACK_MS = 2 * HOUR_MS

const DAYS: Record<Calendar['unit'], number> = { day: 1, week: 7, month: 31 }

/** Upper bound of a period's length, in milliseconds. */
export function longestMs({ unit }: Calendar): number {
  return DAYS[unit] * DAY_MS + SET_BACK_MS
}

/** Starts of the previous, the current and the next period, and the end of the next. */
export type Boundaries = readonly [number, number, number, number]

/** A time zone's clock, and the periods by it that were asked for last: calculating them takes long. */
interface Zone {
  readonly dates: Intl.DateTimeFormat
  readonly known: { [unit in Calendar['unit']]?: Boundaries }
}

/** The periods around `at`; the same object until the next period begins. */
export function boundariesAt({ unit, timezone }: Calendar, at: number): Boundaries {
  const { dates, known } = zoneOf(timezone)
  const last = known[unit]
  if (last !== undefined && last[1] <= at && at < last[2]) return last
  const first = firstDay(unit, dayAt(dates, at))
  const days = [shifted(unit, first, -1), first, shifted(unit, first, 1), shifted(unit, first, 2)]
  const boundaries = days.map(day => beginOf(dates, day)) as unknown as Boundaries
  known[unit] = boundaries
  return boundaries
}

/**
 * Length of the period that contains `at`. Neighbouring periods are looked up without replacing the cached ones,
 * because clocks that differ a little may ask for both sides of a boundary in turn.
 */
export function lengthAt(calendar: Calendar, at: number): number {
  const { known } = zoneOf(calendar.timezone)
  const [before, begin, end, after] = known[calendar.unit] ?? boundariesAt(calendar, at)
  if (begin <= at && at < end) return end - begin
  if (before <= at && at < begin) return begin - before
  if (end <= at && at < after) return after - end
  const fresh = boundariesAt(calendar, at)
  return fresh[2] - fresh[1]
}

/** Length of the current period of the demand's window at index `place`; undefined for a rolling window. */
export function calendarLength(demand: Demand, place: number, at: number): number | undefined {
  const calendar = demand.kind === 'windows' ? demand.windows[place]?.calendar : undefined
  return calendar === undefined ? undefined : lengthAt(calendar, at)
}

const zones = new Map<string, Zone>()

/** Cached, because making a formatter takes long and there are few zones. */
function zoneOf(timeZone: string): Zone {
  let zone = zones.get(timeZone)
  if (zone === undefined) {
    const dates = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
    })
    zone = { dates, known: {} }
    zones.set(timeZone, zone)
  }
  return zone
}

/** The local day at a moment, as midnight UTC of the same date. */
function dayAt(dates: Intl.DateTimeFormat, at: number): number {
  const parts = dates.formatToParts(at)
  const numberOf = (name: string) => Number(parts.find(({ type }) => type === name)?.value)
  return Date.UTC(numberOf('year'), numberOf('month') - 1, numberOf('day'))
}

function firstDay(unit: Calendar['unit'], day: number): number {
  const date = new Date(day)
  if (unit === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
  const sinceMonday = (date.getUTCDay() + 6) % 7
  return unit === 'week' ? day - sinceMonday * DAY_MS : day
}

function shifted(unit: Calendar['unit'], day: number, by: number): number {
  if (unit !== 'month') return day + by * DAYS[unit] * DAY_MS
  const date = new Date(day)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + by, 1)
}

/** The first moment of a local day. Not all days begin at 0:00: some clocks are set forward at midnight. */
function beginOf(dates: Intl.DateTimeFormat, day: number): number {
  let [before, since] = [(day - FARTHEST_MS) / 1000, (day + FARTHEST_MS) / 1000]
  while (since - before > 1) {
    const middle = Math.floor((before + since) / 2)
    if (dayAt(dates, middle * 1000) >= day) since = middle
    else before = middle
  }
  return since * 1000
}
