/** A request's cost where it depends on the upstream's response: on its status, or on a number in a header. Pure. */
import type { UpstreamAnswer } from '../demand.js'

/** The settings `cost` and `countWhen` as rules write them. */
export interface WrittenCost {
  readonly cost?: number | { readonly answerHeader: string } | undefined
  /** Statuses, or classes of them such as `4xx`. */
  readonly countWhen?: { readonly status: readonly (number | string)[] } | undefined
}

/** The highest cost that a response can report; anything above counts as this. */
export const MOST_UNITS = 1_000_000_000

/**
 * Returns what tells the cost of a response, in units; undefined if the cost is known before the request is forwarded.
 */
export function costAfterAnswer({
  cost = 1,
  countWhen,
}: WrittenCost): ((answer: UpstreamAnswer) => number) | undefined {
  const unitsOf = typeof cost === 'number' ? () => cost : unitsFromHeader(cost.answerHeader)
  if (countWhen === undefined) return typeof cost === 'number' ? undefined : unitsOf
  const counts = statusTest(countWhen.status)
  return answer => (counts(answer.status) ? unitsOf(answer) : 0)
}

function statusTest(written: readonly (number | string)[]): (status: number) => boolean {
  const wanted = new Set(written.map(one => (typeof one === 'number' ? one : Number(one[0]))))
  return status => wanted.has(status) || wanted.has(Math.floor(status / 100))
}

/** A missing or invalid value costs 1; a fraction is rounded up. */
function unitsFromHeader(header: string): (answer: UpstreamAnswer) => number {
  return answer => {
    const value = answer.header(header)
    if (value === undefined || !/^\d+(\.\d+)?$/.test(value)) return 1
    return Math.min(MOST_UNITS, Math.ceil(Number(value)))
  }
}
