/**
 * What was admitted locally while Redis was away, until Redis has counted it. Without it a late call or a short
 * outage would grant the quota twice, once here and once there.
 */
import { BoundedMap } from '../store/bounded-map.js'
import {
  type Answer,
  type Ask,
  costOf,
  type Granted,
  isChargedLater,
  type LateCharge,
} from '../store/store.js'

/** Tokens spent at one time. */
export interface LocalSpend {
  at: number
  count: number
  /**
   * Once Redis was told: when they count as spent there, in microseconds of its clock. Undefined if it has not heard,
   * and then they are owed again.
   */
  countedAt?: Promise<number | undefined> | undefined
}

/** Tokens spent locally, oldest first. */
interface Owed {
  /** The latest that was granted. */
  ask: Ask
  readonly spent: LocalSpend[]
}

/** What Redis has yet to count for one key: age in milliseconds, count, age, count, … */
export interface BacklogEntry {
  readonly ask: Ask
  readonly spent: readonly number[]
  /** What this is made of, in the same order. */
  readonly spends: readonly LocalSpend[]
}

/** The backlog of a charge made after the fact, as of now. */
export function backlogEntry({ ask, units }: LateCharge): BacklogEntry {
  return { ask, spent: [0, units], spends: [] }
}

/** An age as Redis is told it. */
export function toMicroseconds(ms: number): number {
  return Math.floor(ms * 1000)
}

const MOST_KEYS = 50_000
/** Greatest number of times for one key: beyond it, new tokens join the last ones, at the later time. */
const MOST_TIMES = 64

export class Backlog {
  readonly #now: () => number
  readonly #owed = new BoundedMap<Owed>(MOST_KEYS)
  /** Keys whose backlog is on its way to Redis. */
  readonly #sent = new BoundedMap<true>(MOST_KEYS)

  /** @param now in milliseconds, from any origin */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Notes what this process granted by its own counters. Slots are left out: requests give them back.
   *
   * @returns the answers, each with what it was noted as
   */
  owe(asks: readonly Ask[], answers: readonly Answer[]): Answer[] {
    return answers.map((answer, i) => {
      const ask = asks[i] as Ask
      return isGrantedHere(ask.demand, answer)
        ? { ...answer, owed: this.#note(ask, costOf(ask.demand)) }
        : answer
    })
  }

  /** Removes a grant, or a part of it, that was not used after all, and that Redis was not told of. */
  forgive({ key, demand }: Ask, { owed: spend }: Granted): void {
    const spent = this.#owed.get(key)?.spent
    const at = spend === undefined ? -1 : (spent?.indexOf(spend) ?? -1)
    if (spend === undefined || spent === undefined || at === -1) return
    spend.count -= Math.min(costOf(demand), spend.count)
    if (spend.count > 0) return
    spent.splice(at, 1)
    if (spent.length === 0) this.#owed.delete(key)
  }

  get isEmpty(): boolean {
    return this.#owed.size === 0
  }

  /** Takes out the entries of these keys. */
  settle(asks: readonly Ask[]): BacklogEntry[] {
    return this.isEmpty ? [] : asks.flatMap(ask => this.#settle(ask))
  }

  /** Takes out at most that many entries of keys for which `isDue`. */
  settleSome(most: number, isDue: (key: string) => boolean): BacklogEntry[] {
    const due: Ask[] = []
    for (const { ask } of this.#owed.values()) {
      if (due.length >= most) break
      if (isDue(ask.key)) due.push(ask)
    }
    return this.settle(due)
  }

  #settle(ask: Ask): BacklogEntry[] {
    const owed = this.#owed.get(ask.key)
    if (owed === undefined) return []
    this.#owed.delete(ask.key)
    this.#sent.set(ask.key, true)
    const now = this.#now()
    const spends = owed.spent
    return [{ ask, spent: spends.flatMap(({ at, count }) => [now - at, count]), spends }]
  }

  /** Takes out those of these keys whose backlog was sent to Redis: the counts that Redis answers then include it. */
  takeCounted(asks: readonly Ask[]): string[] {
    if (this.#sent.size === 0) return []
    const counted = asks.flatMap(({ key }) => (this.#isCounted(key) ? [key] : []))
    for (const key of counted) this.#sent.delete(key)
    return counted
  }

  #isCounted(key: string): boolean {
    return this.#sent.get(key) !== undefined && this.#owed.get(key) === undefined
  }

  forget(key: string): void {
    this.#owed.delete(key)
    this.#sent.delete(key)
  }

  /** These charges did not arrive: they are owed again, as if spent now. */
  restore(backlog: readonly BacklogEntry[]): void {
    for (const { ask, spent, spends } of backlog) {
      this.#sent.delete(ask.key)
      for (const spend of spends) this.#restore(ask, spend)
      // A charge made after the fact.
      if (spends.length === 0) for (let i = 1; i < spent.length; i += 2) this.#note(ask, spent[i] as number)
    }
  }

  #restore(ask: Ask, spend: LocalSpend): void {
    spend.at = this.#now()
    spend.countedAt = undefined
    const owed = this.#owed.get(ask.key)
    if (owed === undefined) this.#owed.set(ask.key, { ask, spent: [spend] })
    else owed.spent.push(spend)
  }

  #note(ask: Ask, count: number): LocalSpend {
    const at = this.#now()
    const owed = this.#owed.get(ask.key)
    const spent = owed?.spent
    if (owed !== undefined) owed.ask = ask
    const last = spent?.at(-1)
    if (spent !== undefined && last !== undefined && (last.at === at || spent.length >= MOST_TIMES)) {
      last.at = at
      last.count += count
      return last
    }
    const spend = { at, count }
    if (spent === undefined) this.#owed.set(ask.key, { ask, spent: [spend] })
    else spent.push(spend)
    return spend
  }
}

function isGrantedHere(demand: Ask['demand'], { granted, store }: Answer): boolean {
  return demand.kind !== 'slots' && !isChargedLater(demand) && granted && store === 'local'
}
