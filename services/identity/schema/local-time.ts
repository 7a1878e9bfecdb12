/**
 * Times as people fill them in: a browser's inputs for them have no zone, so the schema says which one is meant
 * (`x-timezone`). Stored values are RFC 3339, with the offset of that zone.
 */
import { own } from '../../json.js'
import { SchemaError } from './document.js'
import type { Fragment } from './fragments.js'

const FIXED = /^(?:UTC|([+-])([01]\d|2[0-3]):([0-5]\d))$/
const WALL = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?$/
const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:Z|[+-]\d\d:\d\d)$/i
const CLOCK = /^\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?$/
const ZONED_CLOCK = /^(\d\d:\d\d:\d\d(?:\.\d{1,3})?)(Z|[+-]\d\d:\d\d)$/i
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** How one field's times are shown and read. */
export interface LocalTime {
  /** The zone as the schema names it. */
  readonly zone: string
  readonly input: 'datetime-local' | 'time'
  /** What is stored for a text; a text that is not a time without a zone stays as it is. */
  toStored(text: string): string
  /** What the input shows; undefined when it cannot show that text without changing it. */
  toShown(text: string): string | undefined
}

/** The time handling of a field whose fragments name a zone. Throws SchemaError when the zone cannot be used. */
export function localTimeOf(
  fragments: readonly Fragment[],
  format: string | undefined,
  path: string,
): LocalTime | undefined {
  const said = fragments.find(({ schema }) => Object.hasOwn(schema, 'x-timezone'))
  if (said === undefined) return undefined
  const times = localTime(format, own(said.schema, 'x-timezone'))
  if (typeof times === 'string') throw new SchemaError(`${path}: ${times}`)
  return times
}

/** The time handling of a field with that format; the end of an error sentence when the zone cannot be used. */
export function localTime(format: string | undefined, zone: unknown): LocalTime | string {
  if (format !== 'date-time' && format !== 'time') return 'x-timezone needs the format "date-time" or "time"'
  const offsetAt = typeof zone === 'string' ? offsetsOf(zone) : undefined
  if (typeof zone !== 'string' || !offsetAt) {
    return 'x-timezone has to be UTC, an offset such as +01:00 or a zone such as Europe/Berlin'
  }
  if (format === 'date-time') return moments(zone, offsetAt)
  if (FIXED.test(zone)) return clocks(zone, offsetAt(0))
  return 'a time without a date needs UTC or an offset such as +01:00 as its x-timezone'
}

/** Milliseconds east of UTC, by epoch time in milliseconds. */
type OffsetAt = (time: number) => number

function offsetsOf(zone: string): OffsetAt | undefined {
  const [fixed, sign, hours, minutes] = FIXED.exec(zone) ?? []
  if (fixed !== undefined) {
    const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * MINUTE_MS
    return () => (sign === '-' ? -offset : offset)
  }
  try {
    const clock = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      dateStyle: 'short',
      timeStyle: 'medium',
    })
    // The Swedish format is that of ISO 8601.
    return time => {
      const second = Math.floor(time / 1000) * 1000
      return Date.parse(`${clock.format(second).replace(' ', 'T')}Z`) - second
    }
  } catch {
    return undefined
  }
}

function moments(zone: string, offsetAt: OffsetAt): LocalTime {
  const toStored = (text: string): string => {
    const [found, date, minute, second = ':00'] = WALL.exec(text) ?? []
    const wall = Date.parse(`${date}T${minute}${second}Z`)
    if (found === undefined || Number.isNaN(wall)) return text
    const offset = offsetOfWall(wall, offsetAt)
    // An offset with seconds, from before zones used whole minutes: only UTC can express it.
    if (offset % MINUTE_MS !== 0) return new Date(wall - offset).toISOString()
    return `${date}T${minute}${second}${offsetText(offset)}`
  }
  return {
    zone,
    input: 'datetime-local',
    toStored,
    toShown(text) {
      if (WALL.test(text)) return text.replace(' ', 'T')
      const time = MOMENT.test(text) ? Date.parse(text) : Number.NaN
      const offset = Number.isNaN(time) ? Number.NaN : offsetAt(time)
      if (Number.isNaN(offset)) return undefined
      const wall = shortened(new Date(time + offset).toISOString().slice(0, -1))
      // In an hour that occurs twice, the input would be read as the first occurrence.
      return Date.parse(toStored(wall)) === time ? wall : undefined
    },
  }
}

/**
 * For an hour that occurs twice, the first occurrence; for one that is skipped, as if the clocks had not changed yet.
 */
function offsetOfWall(wall: number, offsetAt: OffsetAt): number {
  const candidates = [offsetAt(wall - DAY_MS), offsetAt(wall + DAY_MS)]
  const [before = 0] = candidates
  return candidates.find(offset => offsetAt(wall - offset) === offset) ?? before
}

function clocks(zone: string, offset: number): LocalTime {
  return {
    zone,
    input: 'time',
    toStored: text =>
      CLOCK.test(text) ? `${text.length === 5 ? `${text}:00` : text}${offsetText(offset)}` : text,
    toShown(text) {
      if (CLOCK.test(text)) return text
      const [, clock, written = ''] = ZONED_CLOCK.exec(text) ?? []
      const time = Date.parse(`2000-01-01T${clock}${written}`)
      return Number.isNaN(time) ? undefined : shortened(new Date(time + offset).toISOString().slice(11, -1))
    },
  }
}

function offsetText(offset: number): string {
  if (offset === 0) return 'Z'
  const minutes = Math.abs(offset) / MINUTE_MS
  const two = (number: number) => String(number).padStart(2, '0')
  return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/** Leaves out seconds that are zero. */
function shortened(time: string): string {
  return time.replace(/\.000$/, '').replace(/(\d\d:\d\d):00$/, '$1')
}
