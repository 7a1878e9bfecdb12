/** A rate with room for a burst, as a window that admits the same in the long run. */

/** The `quota` of a volumetric rule. */
export interface WindowQuota {
  readonly requests: number
  readonly per: string
}

const DAY = 86_400
const LONGEST_BUCKET = 31 * DAY
const MOST = 1_000_000_000

/**
 * The shortest window of whole seconds in which `rate` (requests per second) amounts to at least `atOnce`: this
 * preserves the rate and, except for rounding, the burst. Undefined when it is longer than a day.
 */
export function windowOf(rate: number, atOnce: number): WindowQuota | undefined {
  const { requests, seconds } = windowAt(rate, atOnce)
  return seconds <= DAY && requests <= MOST ? { requests, per: `${seconds}s` } : undefined
}

/** A token bucket of a project-limits bucket, which holds `requests` and refills them in `seconds`. */
export interface TokenBucket {
  readonly requests: number
  readonly seconds: number
  /** True when both its size and its rate are as asked. */
  readonly isExact: boolean
  readonly quota: object
}

/** Undefined when it would be too large or too slow. */
export function tokenBucketOf(rate: number, atOnce: number): TokenBucket | undefined {
  const { requests, seconds } = windowAt(rate, atOnce)
  if (!(seconds <= LONGEST_BUCKET && requests <= MOST)) return undefined
  const isExact = requests === atOnce && Math.abs(rate * seconds - requests) < 1e-6
  const window = { requests, per: `${seconds}s` }
  const quota = {
    ...(seconds === 1 && { burst: requests }),
    ...(seconds === 60 && { sustained: requests }),
    ...(seconds !== 1 && seconds !== 60 && { windows: [{ name: 'rate', ...window }] }),
    algorithm: 'token-bucket',
  }
  return { requests, seconds, isExact, quota }
}

function windowAt(rate: number, atOnce: number): { requests: number; seconds: number } {
  // A rate such as 5 per minute has no exact binary form: without the margin its window would be a second too long.
  const seconds = Math.max(1, Math.ceil(atOnce / rate - 1e-9))
  return { requests: Math.max(1, Math.floor(rate * seconds + 1e-9)), seconds }
}
