/** The cost of a request that is known only with its response: reserved before, settled after. Every folder may import it. */

export interface ReservedCost {
  readonly reserve: {
    readonly default: number
    /** Where the number is in the request's JSON, such as `max_tokens`. */
    readonly jsonBody?: string
    /** The largest number that counts. */
    readonly atMost?: number
  }
  /** Where the cost is in the response; the first place that has it counts. */
  readonly settle: {
    readonly answerHeader?: string
    readonly jsonBody?: string
    /** In the data of the last server-sent event that has it. */
    readonly sse?: string
  }
  /** What a request costs whose response has no number: what was reserved, or nothing. Default: `keep`. */
  readonly unknown?: (typeof UNKNOWN_COSTS)[number]
}

export const UNKNOWN_COSTS = ['keep', 'free'] as const

/** The most that one request reserves. */
export function mostReserved({ reserve }: ReservedCost): number {
  return Math.max(reserve.default, reserve.atMost ?? 0)
}
