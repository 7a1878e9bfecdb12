/** Percentages as people write them (`10%`, `0.5%`): read once, then they are numbers of per cent (10, 0.5). */
import { type TUnsafe, Type } from 'typebox'

/** What a percentage looks like. */
const SHAPE = /^[0-9]{1,3}(\.[0-9]{1,3})?%$/

/** The keyword that turns the text into a number while the document is validated; bounds in per cent, inclusive. */
export interface PercentBounds {
  readonly minimum: number
  readonly maximum: number
}

/** The editor's pattern. */
export const PERCENT_PATTERN = SHAPE.source

/** `10%` → 10 when it is within the bounds, else undefined. */
export function percentWithin(text: string, bounds: PercentBounds): number | undefined {
  const { minimum, maximum } = bounds
  const percent = SHAPE.test(text) ? Number.parseFloat(text) : Number.NaN
  return percent >= minimum && percent <= maximum ? percent : undefined
}

/** `a share from 0% to 100%, such as 10%`. */
export function describePercent({ minimum, maximum }: PercentBounds): string {
  return `a share from ${minimum}% to ${maximum}%, such as 10%`
}

interface Annotations {
  readonly default?: string
  readonly description?: string
  readonly expected?: string
}

/** Schema of a field written as a percentage; after validation it holds a number of per cent. */
export function Percent({ minimum, maximum, ...annotations }: PercentBounds & Annotations): TUnsafe<number> {
  return Type.Unsafe<number>({ type: 'string', percent: { minimum, maximum }, ...annotations })
}
