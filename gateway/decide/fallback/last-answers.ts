/**
 * Redis's last answer about each key, so that counting in its place begins where Redis left off: a late call or an
 * outage adds at most this instance's share of what was left, never a fresh quota.
 */
import type { Demand } from '../../demand.js'
import { BoundedMap, useOf } from '../store/bounded-map.js'
import { type Answer, type Ask, type Count, sameQuota } from '../store/store.js'

/** The counts of Redis's last answer. Times in milliseconds. */
export interface LastAnswer {
  readonly counts: readonly Count[]
  /** Time since that answer. */
  readonly elapsedMs: number
}

interface Known {
  readonly demand: Demand
  readonly counts: readonly Count[]
  readonly at: number
}

const MOST_KEYS = 100_000

export class LastAnswers {
  readonly #now: () => number
  readonly #known = new BoundedMap<Known>(MOST_KEYS)

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Remembers Redis's answers to these asks. */
  remember(asks: readonly Ask[], answers: readonly Answer[]): void {
    const at = this.#now()
    for (let i = 0; i < asks.length; i += 1) {
      const { key, demand } = asks[i] as Ask
      const { store, counts } = answers[i] as Answer
      if (demand.kind === 'slots' || store === 'none') continue
      const uses = counts.map(({ quota, used = 0 }) => useOf(used, quota))
      this.#known.set(key, { demand, counts, at }, uses.includes('most') ? 'most' : 'little')
    }
  }

  /** The last answer about the key under the same quota, if any. */
  recall({ key, demand }: Ask): LastAnswer | undefined {
    const known = this.#known.get(key)
    if (known === undefined || !sameQuota(known.demand, demand)) return undefined
    return { counts: known.counts, elapsedMs: this.#now() - known.at }
  }

  forget(key: string): void {
    this.#known.delete(key)
  }
}
