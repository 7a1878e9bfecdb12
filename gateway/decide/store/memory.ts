/** Counters in this process: for a gateway without Redis, and in Redis's stead while it is away. */
import type { Demand, StoreName } from '../../types.js'
import * as slidingWindow from './sliding-window.js'
import { type Answer, type Ask, type Count, type CounterStore, counted, SLOT_RETRY_MS } from './store.js'

/** Spent tokens of one key, one list per window. */
type Windows = slidingWindow.Spent[]

export class MemoryStore implements CounterStore {
  readonly #now: () => number
  readonly #name: StoreName
  readonly #slots = new Map<string, number>()
  /**
   * Keys live in two generations. A touched key moves to the young one; at each turn the old one is dropped whole,
   * so keys that nobody uses cost nothing to forget.
   */
  #young = new Map<string, Windows>()
  #old = new Map<string, Windows>()
  #turnAt = 0
  #generationMs = 0

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number, name: StoreName = 'memory') {
    this.#now = now
    this.#name = name
  }

  take(asks: readonly Ask[]): Answer[] {
    const now = this.#now()
    const refused = new Set<number>()
    const states = asks.map(({ key, demand, group }) => {
      const state = demand.kind === 'windows' ? this.#windows(key, demand, now) : undefined
      const violated = state === undefined ? this.#full(key, demand) : overspent(state, demand)
      if (violated) refused.add(group)
      return state
    })
    return asks.map((ask, i) => this.#answer(ask, states[i], !refused.has(ask.group), now))
  }

  giveBack(_asks: readonly Ask[], answers: readonly Answer[]): void {
    for (const answer of answers) answer.release?.()
  }

  async close(): Promise<void> {
    this.#young.clear()
    this.#old.clear()
    this.#slots.clear()
  }

  #windows(key: string, demand: Demand & { kind: 'windows' }, now: number): Windows {
    this.#turn(slidingWindow.lifetimeMs(demand.windows), now)
    let state = this.#young.get(key)
    if (state === undefined) {
      state = this.#old.get(key) ?? demand.windows.map(() => [])
      this.#young.set(key, state)
    }
    for (const [i, window] of demand.windows.entries()) {
      slidingWindow.forget(state[i] as slidingWindow.Spent, window.ms, now)
    }
    return state
  }

  #turn(lifetimeMs: number, now: number): void {
    if (lifetimeMs > this.#generationMs) {
      this.#generationMs = lifetimeMs
      this.#turnAt = now + lifetimeMs
    }
    if (now < this.#turnAt) return
    this.#old = this.#young
    this.#young = new Map()
    this.#turnAt = now + this.#generationMs
  }

  #held(key: string): number {
    return this.#slots.get(key) ?? 0
  }

  #full(key: string, demand: Demand): boolean {
    return demand.kind === 'slots' && this.#held(key) >= demand.max
  }

  #answer(ask: Ask, state: Windows | undefined, granted: boolean, now: number): Answer {
    const { demand, key } = ask
    const base = { granted, unavailable: false, store: this.#name }
    if (demand.kind === 'slots') {
      const violated = !granted && this.#full(key, demand)
      const release = granted ? this.#hold(key) : undefined
      return { ...base, counts: [counted(demand.max, this.#held(key), violated, SLOT_RETRY_MS)], release }
    }
    const counts = demand.windows.map((window, i): Count => {
      const spent = (state as Windows)[i] as slidingWindow.Spent
      const violated = !granted && slidingWindow.used(spent) >= window.quota
      if (granted) slidingWindow.spend(spent, window.ms, now)
      const used = slidingWindow.used(spent)
      return counted(window.quota, used, violated, slidingWindow.resetMs(spent, window, now))
    })
    return { ...base, counts }
  }

  #hold(key: string): () => void {
    this.#slots.set(key, this.#held(key) + 1)
    let released = false
    return () => {
      if (released) return
      released = true
      const left = this.#held(key) - 1
      if (left > 0) this.#slots.set(key, left)
      else this.#slots.delete(key)
    }
  }
}

function overspent(state: Windows, demand: Demand): boolean {
  return (
    demand.kind === 'windows' &&
    demand.windows.some((window, i) => slidingWindow.used(state[i] as slidingWindow.Spent) >= window.quota)
  )
}
