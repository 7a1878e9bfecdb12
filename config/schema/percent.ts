/** Shares as people write them (`10%`, `0.5%`), read as numbers from 0 to 1. */
import { type TUnsafe, Type } from 'typebox'

/** What a share looks like; also the editor's pattern. */
export const PERCENT_PATTERN = '^[0-9]{1,3}(\\.[0-9]{1,3})?%$'
const SHAPE = new RegExp(PERCENT_PATTERN)

/** The keyword that turns the text into a number while the document is validated; bounds in per cent, inclusive. */
export interface PercentBounds {
  readonly minimum: number
  readonly maximum: number
}

/** `10%` → 0.1 when it is a share within the bounds, else undefined. */
export function shareWithin(text: string, { minimum, maximum }: PercentBounds): number | undefined {
  const percent = SHAPE.test(text) ? Number.parseFloat(text) : Number.NaN
  return percent >= minimum && percent <= maximum ? percent / 100 : undefined
}

/** `a share from 0% to 100%, such as 10%`. */
export function describePercent({ minimum, maximum }: PercentBounds): string {
  return `a share from ${minimum}% to ${maximum}%, such as 10%`
}

/** Schema of a field written as a percentage; after validation it holds a number from 0 to 1. */
export function Percent({
  minimum,
  maximum,
  ...annotations
}: PercentBounds & { readonly default?: string; readonly description?: string }): TUnsafe<number> {
  return Type.Unsafe<number>({ type: 'string', percent: { minimum, maximum }, ...annotations })
}
