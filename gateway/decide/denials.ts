/**
 * Remembers Redis's refusals: a refused key is refused here until it could pass again, so a flood causes no load on
 * Redis. An entry applies only to the quota it was made under.
 */
import type { Demand } from '../demand.js'
import { BoundedMap } from './store/bounded-map.js'
import {
  type Answer,
  type Ask,
  type Count,
  costOf,
  counted,
  isLifetimeAt,
  type Refused,
  sameQuota,
  takesCredit,
} from './store/store.js'

interface Denial {
  readonly demand: Demand
  readonly answer: Refused
  readonly at: number
  readonly until: number
}

/** Redis is asked again at least this often, because a counter may have been reset there. */
const LONGEST_MS = 60_000

/** The same where another gateway may have given back what its requests had reserved, or added credit. */
const REFUNDABLE_MS = 1000

/** Costs of one key, of which clients may choose their own. */
const MOST_COSTS = 16

/** Bounds memory under a flood of keys: Redis is asked again about refusals that were forgotten. */
const MOST = 10_000

export class Denials {
  readonly #now: () => number
  /** By key, one entry for each refused cost: what is too much for one request may be enough for another. */
  readonly #denials = new BoundedMap<readonly Denial[]>(MOST)

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number) {
    this.#now = now
  }

  get empty(): boolean {
    return this.#denials.size === 0
  }

  forget(key: string): void {
    this.#denials.delete(key)
  }

  /**
   * The refusal that still applies to this ask, with its times counted down; windows with room again are not violated.
   */
  recall({ key, demand }: Ask): Refused | undefined {
    const denials = this.#denials.get(key)
    if (denials === undefined) return undefined
    const now = this.#now()
    const valid = denials.filter(one => one.until > now && sameQuota(one.demand, demand))
    if (valid.length === 0) this.#denials.delete(key)
    const cost = costOf(demand)
    const denial = valid.find(one => costOf(one.demand) === cost)
    if (denial === undefined) return undefined
    const elapsed = now - denial.at
    const counts = denial.answer.counts.map((count, i) => later(count, elapsed, demand, i))
    return { ...denial.answer, counts }
  }

  /**
   * Keeps a refusal by Redis that only time can end. Slots may be given back at any moment, and so may reserved tokens:
   * a meter whose refusal is final has passed its quota.
   */
  remember({ key, demand, isRefundable }: Ask, answer: Answer): void {
    if (demand.kind === 'slots' || answer.granted || answer.unavailable || answer.store !== 'redis') return
    if (demand.kind === 'meter' && answer.counts.every(({ quota, used = 0 }) => used <= quota)) return
    // Never longer than the Retry-After that the client got.
    const longestMs = isRefundable || takesCredit(demand) ? REFUNDABLE_MS : LONGEST_MS
    const forMs = Math.min(longestViolation(answer, demand), answer.askAgainMs ?? longestMs, longestMs)
    if (forMs <= 0) return
    const at = this.#now()
    const cost = costOf(demand)
    const others = (this.#denials.get(key) ?? []).filter(
      one => one.until > at && costOf(one.demand) !== cost && sameQuota(one.demand, demand),
    )
    this.#denials.set(key, [...others.slice(1 - MOST_COSTS), { demand, answer, at, until: at + forMs }])
  }
}

/** The state of the demand's window at index `place`, after `elapsed` ms in which nothing was admitted. */
function later(count: Count, elapsed: number, demand: Demand, place: number): Count {
  const { quota, used = 0, violated, resetMs } = count
  if (isLifetimeAt(demand, place)) return count
  if (elapsed < resetMs) return { ...count, resetMs: resetMs - elapsed }
  const ms = lengthOf(demand, place) ?? resetMs
  if (elapsed >= ms) return counted(quota, 0, false, 0)
  // Some quota has returned, but how much is unknown.
  return counted(quota, violated ? quota - costOf(demand) : used, false, ms - elapsed)
}

/** Window length in ms; undefined for a calendar period, which ends at its reset. */
function lengthOf(demand: Demand, place: number): number | undefined {
  if (demand.kind !== 'windows') return Number.POSITIVE_INFINITY
  const window = demand.windows[place]
  return window?.calendar === undefined ? window?.ms : undefined
}

/** Milliseconds until no window is violated; 0 if none is: then another rule of the group refused. */
function longestViolation({ counts }: Refused, demand: Demand): number {
  let longest = 0
  for (const [i, { violated, resetMs }] of counts.entries())
    if (violated) longest = Math.max(longest, isLifetimeAt(demand, i) ? Number.POSITIVE_INFINITY : resetMs)
  return longest
}
