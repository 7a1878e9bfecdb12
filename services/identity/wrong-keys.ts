/** The throttle of wrong keys. The home of rate-limiter-flexible. */
import { createHash } from 'node:crypto'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Log } from './app.js'

/** Counts a wrong key. Resolves to the seconds its sender has to wait, undefined when it need not; never rejects. */
export type WrongKey = (area: 'identity', source: string, key: string) => Promise<number | undefined>

/** Wrong keys allowed in a minute: from one sender, and of the same key from anywhere. */
const MOST = { source: 20, key: 100 }
const SECONDS = 60

/**
 * Counts in this process, for a service without a gateway that counts for it. The right key is never counted and
 * always accepted, so nobody can lock others out. Senders and keys are hashed into a bounded number of counters, so
 * that a flood cannot fill the memory.
 */
export function countWrongKeys(log: Log): WrongKey {
  const counters = new RateLimiterMemory({ points: MOST.source, duration: SECONDS })
  const count = async (name: string, text: string, limit: number) => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 4)
    const { consumedPoints: times, msBeforeNext } = await counters.penalty(`${name}:${hash}`)
    return { isFirst: times === limit + 1, wait: times > limit ? msBeforeNext : 0 }
  }
  return async (area, source, key) => {
    const counts = await Promise.all([count('source', source, MOST.source), count('key', key, MOST.key)])
    if (counts.some(({ isFirst }) => isFirst)) {
      log.warn({ area, source }, 'Too many wrong keys: their sender gets 429')
    }
    const wait = Math.max(...counts.map(each => each.wait))
    return wait > 0 ? Math.ceil(Math.max(1000, wait) / 1000) : undefined
  }
}
