/** Counters in this process: for a gateway without Redis, and in place of Redis while it is away. */

import type { Demand, Window } from '../../demand.js'
import type { StoreName } from '../../verdict.js'
import { MemoryCredit } from '../credit/memory-credit.js'
import { type Spent, used } from '../windows/algorithm.js'
import { algorithmOf } from '../windows/algorithms.js'
import { lengthAt } from '../windows/calendar.js'
import type { WallClock } from '../windows/date-clock.js'
import { WindowStates } from '../windows/window-states.js'
import { BoundedMap } from './bounded-map.js'
import { chargeOf, countOf, isFull, type Meter, Meters, refusedBy } from './meters.js'
import {
  type Answer,
  type Ask,
  type Count,
  type CounterStore,
  costOf,
  counted,
  countedWithCredit,
  isChargedLater,
  type LateCharge,
  SLOT_RETRY_MS,
} from './store.js'

type Windows = Demand & { kind: 'windows' }
type State = Spent[] | Meter | undefined

/** Resets that are remembered. */
const MOST_FORGOTTEN = 10_000

export class MemoryStore implements CounterStore {
  readonly #now: () => number
  readonly #name: StoreName
  readonly #heldElsewhere: (key: string) => number
  readonly #slots = new Map<string, number>()
  readonly #wallClock: WallClock
  readonly #states: WindowStates
  readonly #meters = new Meters()
  readonly #forgottenAt = new BoundedMap<number>(MOST_FORGOTTEN)
  readonly credit = new MemoryCredit()

  /**
   * @param now in milliseconds, from any origin
   * @param heldElsewhere slots of a key that this process holds in Redis, which this store replaces for the moment
   * @param wallClock by default `now` is itself the time since the epoch
   */
  constructor(
    now: () => number,
    name: StoreName = 'memory',
    heldElsewhere: (key: string) => number = () => 0,
    wallClock: WallClock = at => at,
  ) {
    this.#now = now
    this.#name = name
    this.#heldElsewhere = heldElsewhere
    this.#wallClock = wallClock
    this.#states = new WindowStates(wallClock)
  }

  take(asks: readonly Ask[]): Answer[] {
    return this.#ask(asks, true)
  }

  /** A call within this process costs nothing, so any report-only ask may join it. */
  rides(): boolean {
    return true
  }

  peek(asks: readonly Ask[]): Answer[] {
    return this.#ask(asks, false)
  }

  giveBack(asks: readonly Ask[], answers: readonly Answer[]): void {
    const now = this.#now()
    for (const [i, answer] of answers.entries()) {
      if (!answer.granted) continue
      const { key, demand } = asks[i] as Ask
      const { at } = answer
      answer.release?.()
      if (at === undefined || demand.kind === 'slots' || isChargedLater(demand)) continue
      // Its charge is forgotten: what is counted now is others'.
      if (at < (this.#forgottenAt.get(key) ?? Number.NEGATIVE_INFINITY)) continue
      if (demand.kind === 'meter') {
        this.#meters.giveBack(key, demand, at, now)
        continue
      }
      const state = this.#states.read(key, demand.windows, now)
      for (const [j, window] of demand.windows.entries()) {
        algorithmOf(window).giveBack(state[j] as Spent, window, at, now, costOf(demand), this.#wallClock)
      }
      this.#states.write(key, demand.windows, state)
    }
  }

  charge(charges: readonly LateCharge[]): void {
    const now = this.#now()
    for (const { ask, units } of charges) {
      const { key, demand } = ask
      if (demand.kind === 'meter') this.#meters.chargeLate(key, demand, units, now)
      if (demand.kind !== 'windows') continue
      const state = this.#states.read(key, demand.windows, now)
      for (const [i, window] of demand.windows.entries())
        algorithmOf(window).spend(state[i] as Spent, window, now, units, this.#wallClock)
      this.#states.write(key, demand.windows, state)
    }
  }

  /** Forgets what was counted by `key`; held slots count as given back. */
  forget(key: string): void {
    this.#forgottenAt.set(key, this.#now())
    this.#states.delete(key)
    this.#meters.delete(key)
    this.#slots.delete(key)
  }

  async close(): Promise<void> {
    this.#states.clear()
    this.#meters.clear()
    this.#slots.clear()
  }

  /** Charges what is granted, or without `charges` computes the answers on copies. */
  #ask(asks: readonly Ask[], charges: boolean): Answer[] {
    const now = this.#now()
    const states: State[] = []
    let refused: Set<number> | undefined
    for (const { key, demand, group } of asks) {
      const state = this.#stateOf(key, demand, now, charges)
      states.push(state)
      if (!this.#isFull(key, demand, state)) continue
      refused ??= new Set()
      refused.add(group)
    }
    const answers: Answer[] = []
    for (let i = 0; i < asks.length; i += 1) {
      const { key, demand, group } = asks[i] as Ask
      const granted = refused === undefined || !refused.has(group)
      answers.push(
        demand.kind === 'slots'
          ? this.#takeSlot(key, demand, granted, charges)
          : this.#answer(this.#spend(key, demand, states[i], granted, now, charges), granted, now),
      )
    }
    return answers
  }

  #answer(counts: readonly Count[], granted: boolean, at?: number, release?: () => void): Answer {
    const store = this.#name
    return granted
      ? { granted, unavailable: false, store, counts, at, release }
      : { granted, unavailable: false, store, counts }
  }

  #spend(
    key: string,
    demand: Exclude<Demand, { kind: 'slots' }>,
    state: State,
    granted: boolean,
    now: number,
    charges: boolean,
  ): Count[] {
    return demand.kind === 'meter'
      ? [this.#spendMeter(key, demand, state as Meter, granted, now, charges)]
      : this.#spendWindows(key, demand, state as Spent[], granted, now, charges)
  }

  #stateOf(key: string, demand: Demand, now: number, charges: boolean): State {
    if (demand.kind === 'slots') return undefined
    if (demand.kind === 'meter') return this.#meters.read(key, demand, now)
    return this.#states.read(key, demand.windows, now, !charges)
  }

  #isFull(key: string, demand: Demand, state: State): boolean {
    if (demand.kind === 'slots') return this.#held(key) >= demand.max
    if (demand.kind === 'meter') return isFull(state as Meter, demand)
    const { windows, cost = 1 } = demand
    for (let i = 0; i < windows.length; i += 1) {
      const window = windows[i] as Window
      const quota = window.quota + this.#creditOf(key, window)
      if (used((state as Spent[])[i] as Spent) + cost > quota) return true
    }
    return false
  }

  #spendWindows(
    key: string,
    demand: Windows,
    state: Spent[],
    granted: boolean,
    now: number,
    charges: boolean,
  ): Count[] {
    const { windows, cost = 1 } = demand
    const counts: Count[] = []
    for (let i = 0; i < windows.length; i += 1) {
      const window = windows[i] as Window
      const spent = state[i] as Spent
      const algorithm = algorithmOf(window)
      const before = used(spent)
      if (granted) algorithm.spend(spent, window, now, cost, this.#wallClock)
      const after = granted ? before + cost : before
      if (window.lifetime) {
        const credit = this.#creditOf(key, window)
        const isFull = !granted && before + cost > window.quota + credit
        counts.push(countedWithCredit(window.quota, credit, after, isFull))
        continue
      }
      const violated = !granted && before + cost > window.quota
      const resetMs = algorithm.resetMs(spent, window, now, after, cost, this.#wallClock)
      counts.push(counted(window.quota, after, violated, resetMs, this.#lengthOf(window, now)))
    }
    if (granted && charges) this.#states.write(key, windows, state)
    return counts
  }

  #creditOf(key: string, { name, lifetime }: Window): number {
    return lifetime ? this.credit.of(key, name) : 0
  }

  #lengthOf({ calendar }: Window, now: number): number | undefined {
    return calendar === undefined ? undefined : lengthAt(calendar, this.#wallClock(now))
  }

  #spendMeter(
    key: string,
    demand: Demand & { kind: 'meter' },
    meter: Meter,
    granted: boolean,
    now: number,
    charges: boolean,
  ): Count {
    if (granted) {
      const charged = charges
        ? this.#meters.charge(key, meter, demand)
        : { ...meter, used: meter.used + chargeOf(demand) }
      return countOf(charged, demand, false, now)
    }
    if (!isFull(meter, demand)) return countOf(meter, demand, false, now)
    const refused = charges ? this.#meters.refuse(key, meter, demand, now) : refusedBy(meter, demand, now)
    return countOf(refused, demand, true, now)
  }

  #takeSlot(key: string, { max }: Demand & { kind: 'slots' }, granted: boolean, charges: boolean): Answer {
    const violated = !granted && this.#held(key) >= max
    const release = granted && charges ? this.#hold(key) : undefined
    const held = this.#held(key) + (granted && !charges ? 1 : 0)
    return this.#answer([counted(max, held, violated, SLOT_RETRY_MS)], granted, undefined, release)
  }

  #held(key: string): number {
    return this.#heldHere(key) + this.#heldElsewhere(key)
  }

  #heldHere(key: string): number {
    return this.#slots.get(key) ?? 0
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
