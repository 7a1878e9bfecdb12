/** Calendar periods computed with Intl alone, to check the code that computes them. */
import type { Calendar } from '../../../gateway/demand.js'

const zones = new Map<string, Intl.DateTimeFormat>()

/** The date in a time zone, such as `2026-03-29`. */
export function localDay(timeZone: string, at: number): string {
  const zone =
    zones.get(timeZone) ??
    new Intl.DateTimeFormat('sv-SE', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
  zones.set(timeZone, zone)
  return zone.format(at)
}

/** The period that a moment is in, named by its day, by its week's Monday or by its month. */
export function periodOf({ unit, timezone }: Calendar, at: number): string {
  const day = localDay(timezone, at)
  if (unit === 'day') return day
  if (unit === 'month') return day.slice(0, 7)
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  return date.toISOString().slice(0, 10)
}
