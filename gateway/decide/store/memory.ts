/** Counters in this process: for a gateway without Redis, and in Redis's stead while it is away. */
import type { Demand, StoreName } from '../../types.js'
import { type Spent, used } from './algorithm.js'
import { algorithmOf } from './algorithms.js'
import { type Answer, type Ask, type Count, type CounterStore, counted, SLOT_RETRY_MS } from './store.js'
import { WindowStates } from './window-states.js'

type Windows = Demand & { kind: 'windows' }

export class MemoryStore implements CounterStore {
  readonly #now: () => number
  readonly #name: StoreName
  readonly #heldElsewhere: (key: string) => number
  readonly #slots = new Map<string, number>()
  readonly #states = new WindowStates()

  /**
   * @param now in milliseconds, from any origin
   * @param heldElsewhere slots of a key that this process holds in the store it stands in for
   */
  constructor(
    now: () => number,
    name: StoreName = 'memory',
    heldElsewhere: (key: string) => number = () => 0,
  ) {
    this.#now = now
    this.#name = name
    this.#heldElsewhere = heldElsewhere
  }

  take(asks: readonly Ask[]): Answer[] {
    return this.#ask(asks, true)
  }

  peek(asks: readonly Ask[]): Answer[] {
    return this.#ask(asks, false)
  }

  /** Charges what is granted, or works on copies. */
  #ask(asks: readonly Ask[], charges: boolean): Answer[] {
    const now = this.#now()
    const refused = new Set<number>()
    const states = asks.map(({ key, demand, group }) => {
      const state = demand.kind === 'windows' ? this.#stateOf(key, demand, now, charges) : undefined
      const violated =
        demand.kind === 'windows' ? overspent(state as Spent[], demand) : this.#full(key, demand)
      if (violated) refused.add(group)
      return state
    })
    return asks.map((ask, i) => this.#answer(ask, states[i], !refused.has(ask.group), now, charges))
  }

  giveBack(asks: readonly Ask[], answers: readonly Answer[]): void {
    const now = this.#now()
    for (const [i, { granted, at, release }] of answers.entries()) {
      const { key, demand } = asks[i] as Ask
      release?.()
      if (!granted || at === undefined || demand.kind === 'slots') continue
      const state = this.#states.read(key, demand.windows, now)
      for (const [j, window] of demand.windows.entries()) {
        algorithmOf(window).giveBack(state[j] as Spent, window, at, now)
      }
      this.#states.write(key, state)
    }
  }

  /** Forgets what was counted by `key`; slots that are held are as if given back. */
  forget(key: string): void {
    this.#states.delete(key)
    this.#slots.delete(key)
  }

  async close(): Promise<void> {
    this.#states.clear()
    this.#slots.clear()
  }

  #stateOf(key: string, { windows }: Windows, now: number, charges: boolean): Spent[] {
    return charges ? this.#states.read(key, windows, now) : this.#states.copy(key, windows, now)
  }

  #held(key: string): number {
    return this.#heldHere(key) + this.#heldElsewhere(key)
  }

  #heldHere(key: string): number {
    return this.#slots.get(key) ?? 0
  }

  #full(key: string, demand: Demand & { kind: 'slots' }): boolean {
    return this.#held(key) >= demand.max
  }

  #answer(ask: Ask, state: Spent[] | undefined, granted: boolean, now: number, charges: boolean): Answer {
    const { demand, key } = ask
    const base = { granted, unavailable: false, store: this.#name }
    if (demand.kind === 'slots') {
      const violated = !granted && this.#full(key, demand)
      const release = granted && charges ? this.#hold(key) : undefined
      const held = this.#held(key) + (granted && !charges ? 1 : 0)
      return { ...base, counts: [counted(demand.max, held, violated, SLOT_RETRY_MS)], release }
    }
    const counts = demand.windows.map((window, i): Count => {
      const spent = (state as Spent[])[i] as Spent
      const algorithm = algorithmOf(window)
      const violated = !granted && used(spent) >= window.quota
      if (granted) algorithm.spend(spent, window, now)
      return counted(window.quota, used(spent), violated, algorithm.resetMs(spent, window, now))
    })
    if (granted && charges) this.#states.write(key, state as Spent[])
    return { ...base, counts, at: now }
  }

  #hold(key: string): () => void {
    this.#slots.set(key, this.#heldHere(key) + 1)
    let released = false
    return () => {
      if (released) return
      released = true
      const left = this.#heldHere(key) - 1
      if (left > 0) this.#slots.set(key, left)
      else this.#slots.delete(key)
    }
  }
}

function overspent(state: readonly Spent[], { windows }: Windows): boolean {
  return windows.some((window, i) => used(state[i] as Spent) >= window.quota)
}
