/**
 * Redis's last answer about each key, so that counting in its place begins where Redis left off: a late call or an
 * outage adds at most this instance's share of what was left, never a fresh quota.
 */
import type { Demand } from '../../types.js'
import { type Answer, type Ask, type Count, sameQuota } from './store.js'

/** The counts of Redis's last answer. Times in milliseconds. */
export interface Told {
  readonly counts: readonly Count[]
  /** Time since that answer. */
  readonly elapsedMs: number
}

interface Heard {
  demand: Demand
  counts: readonly Count[]
  at: number
}

/** Keys of a generation. There are two, and the younger replaces the older, so forgetting costs nothing. */
const MOST = 50_000

export class LastTold {
  readonly #now: () => number
  #young = new Map<string, Heard>()
  #old = new Map<string, Heard>()

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Remembers Redis's answers to these asks. */
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
