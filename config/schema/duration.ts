/** Lengths of time as people write them (`25ms`, `2s`, `5m`, `1h`, `7d`), read as milliseconds. */
import { type TUnsafe, Type } from 'typebox'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** What a duration text looks like; also the editor's pattern. */
export const DURATION_PATTERN = '^[0-9]{1,9}(ms|s|m|h|d)$'
const SHAPE = new RegExp(DURATION_PATTERN)

/** The keyword that turns the text into milliseconds while the document is validated. */
export interface DurationBounds {
  /** Duration texts, both inclusive. Default `1ms` and `24h`. */
  readonly minimum?: string
  readonly maximum?: string
  /** A duration text: only whole multiples of it are accepted, and it is the default minimum. */
  readonly unit?: '1s'
}

/** `2s` → 2000. Throws a RangeError on anything but a whole number followed by ms, s, m, h or d. */
export function parseDuration(text: string): number {
  if (!SHAPE.test(text)) throw new RangeError(`"${text}" is not a length of time such as 25ms, 2s, 5m or 1h.`)
  const unit = text.replace(/^[0-9]+/, '')
  return Number.parseInt(text, 10) * (UNITS[unit] ?? Number.NaN)
}

/** The milliseconds of `text` when it is a duration within the bounds, else undefined. */
export function durationWithin(text: string, bounds: DurationBounds): number | undefined {
  if (!SHAPE.test(text)) return undefined
  const ms = parseDuration(text)
  if (bounds.unit !== undefined && ms % parseDuration(bounds.unit) !== 0) return undefined
  return ms >= parseDuration(minimumOf(bounds)) && ms <= parseDuration(maximumOf(bounds)) ? ms : undefined
}

/** `a length of time from 1ms to 24h, such as 25ms, 2s, 5m or 1h`. */
export function describeDuration(bounds: DurationBounds): string {
  const range = `from ${minimumOf(bounds)} to ${maximumOf(bounds)}`
  if (bounds.unit !== undefined) return `whole seconds ${range}, such as 2s, 5m or 1h`
  return `a length of time ${range}, such as 25ms, 2s, 5m or 1h`
}

// The default bound keeps durations far below the 24.8 days at which Node's timers overflow and fire at once.
const minimumOf = (bounds: DurationBounds): string => bounds.minimum ?? bounds.unit ?? '1ms'
const maximumOf = (bounds: DurationBounds): string => bounds.maximum ?? '24h'

/** Schema of a field written as a duration text; after validation it holds a number of milliseconds. */
export function Duration(
  options: DurationBounds & { readonly default?: string; readonly description?: string } = {},
): TUnsafe<number> {
  const { minimum, maximum, unit, ...annotations } = options
  const bounds = { ...(minimum && { minimum }), ...(maximum && { maximum }), ...(unit && { unit }) }
  return Type.Unsafe<number>({ type: 'string', duration: bounds, ...annotations })
}
