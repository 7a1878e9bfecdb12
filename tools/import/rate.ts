/** A rate with room for a burst, as the window of a meter that admits the same in the long run. */

/** The `quota` of a volumetric rule. */
export interface WindowQuota {
  readonly requests: number
  readonly per: string
}

const LONGEST_SECONDS = 86_400

/**
 * The shortest window of whole seconds in which `rate` (requests per second) amounts to at least `atOnce`: this
 * preserves the rate and, except for rounding, the burst. Undefined when it is longer than a day.
 */
export function windowOf(rate: number, atOnce: number): WindowQuota | undefined {
  // A rate such as 5 per minute has no exact binary form: without the margin its window would be a second too long.
  const seconds = Math.max(1, Math.ceil(atOnce / rate - 1e-9))
  if (!(seconds <= LONGEST_SECONDS)) return undefined
  return { requests: Math.max(1, Math.floor(rate * seconds + 1e-9)), per: `${seconds}s` }
}
