/** Counts wrong keys. Only this file of the services imports rate-limiter-flexible. */
import { createHash } from 'node:crypto'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { ServiceLog } from '../log.js'
import { HttpError } from './errors.js'

/**
 * Counts a wrong key for an API of the service (`area`). Resolves to the seconds its sender has to wait, undefined when
 * it need not; never rejects.
 */
export type CountWrongKey<Area extends string> = (
  area: Area,
  source: string,
  key: string,
) => Promise<number | undefined>

/** Wrong keys allowed in a minute: from one sender, and of the same key from anywhere. */
const most = { source: 20, key: 100 }

/**
 * Counts in this process, for a service without a gateway that counts for it. The right key is never counted and
 * always accepted, so nobody can lock others out. Senders and keys are hashed into a bounded number of counters, so
 * that a flood cannot fill the memory.
 */
export function countWrongKeys<Area extends string>(log: ServiceLog): CountWrongKey<Area> {
  const counters = new RateLimiterMemory({ points: most.source, duration: 60 })
  const count = async (name: string, text: string, limit: number) => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 4)
    const { consumedPoints: times, msBeforeNext } = await counters.penalty(`${name}:${hash}`)
    return { isFirst: times === limit + 1, wait: times > limit ? msBeforeNext : 0 }
  }
  return async (area, source, key) => {
    const counts = await Promise.all([
      count(`${area}:source`, source, most.source),
      count(`${area}:key`, key, most.key),
    ])
    if (counts.some(({ isFirst }) => isFirst)) {
      log.warn({ area, source }, 'Too many wrong keys: their sender gets 429')
    }
    const wait = Math.max(...counts.map(each => each.wait))
    return wait > 0 ? Math.ceil(Math.max(1000, wait) / 1000) : undefined
  }
}

/** What was sent in place of the right key. */
export interface WrongKey {
  /** Whose key it should be; empty: the service's. */
  readonly owner?: string
  readonly source: string
  /** The header field; a request without it is no guess and is not counted. */
  readonly authorization: string | undefined
}

/** Throws 429 with Retry-After when the sender of a wrong key has to wait. */
export async function refuseWrongKeys<Area extends string>(
  count: CountWrongKey<Area>,
  area: Area,
  { owner, source, authorization }: WrongKey,
): Promise<void> {
  if (!authorization) return
  const wait = await count(area, source, owner === undefined ? authorization : `${owner} ${authorization}`)
  if (wait === undefined) return
  throw new HttpError(
    429,
    'Too many wrong keys were sent. Wait, then send the right one.',
    'too_many_wrong_keys',
    wait,
  )
}
