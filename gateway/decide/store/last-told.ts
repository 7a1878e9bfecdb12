/**
 * What Redis last told this instance of each key, so that whoever stands in for it begins where it left off: a late call or
 * an outage adds at most this instance's share of what was left, never a fresh quota.
 */
import type { Demand } from '../../types.js'
import { type Answer, type Ask, type Count, sameQuota } from './store.js'

/** What was counted when Redis was last heard. Times in milliseconds. */
export interface Told {
  readonly counts: readonly Count[]
  /** Since then. */
  readonly elapsedMs: number
}

interface Heard {
  demand: Demand
  counts: readonly Count[]
  at: number
}

/** Two generations of at most so many keys: the younger replaces the older, so forgetting costs nothing. */
const MOST = 50_000

export class LastTold {
  readonly #now: () => number
  #young = new Map<string, Heard>()
  #old = new Map<string, Heard>()

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Takes in the last answers of Redis to each of the asks. */
  hear(asks: readonly Ask[], answers: readonly Answer[]): void {
    const at = this.#now()
    for (let i = 0; i < asks.length; i += 1) {
      const { key, demand } = asks[i] as Ask
      const { store, counts } = answers[i] as Answer
      if (demand.kind === 'slots' || store === 'none') continue
      const heard = this.#young.get(key)
      if (heard === undefined) this.#young.set(key, { demand, counts, at })
      else Object.assign(heard, { demand, counts, at })
    }
    if (this.#young.size < MOST) return
    this.#old = this.#young
    this.#young = new Map()
  }

  /** The last answer about the key under the same quota, if any. */
  recall({ key, demand }: Ask): Told | undefined {
    const heard = this.#young.get(key) ?? this.#old.get(key)
    if (heard === undefined || !sameQuota(heard.demand, demand)) return undefined
    return { counts: heard.counts, elapsedMs: this.#now() - heard.at }
  }

  forget(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
