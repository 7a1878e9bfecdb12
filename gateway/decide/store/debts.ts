/**
 * What was admitted locally while Redis was away, until Redis has been told. Without it a late call or a short
 * outage would grant the quota twice, once here and once there.
 */
import { BoundedMap } from './bounded-map.js'
import { type Answer, type Ask, costOf, type LateCharge, tellsLater } from './store.js'

/** Tokens spent locally: when and how many, oldest first. */
interface Owed {
  readonly spent: { at: number; count: number }[]
}

/** What Redis has to be told about one key: age in milliseconds, count, age, count, … */
export interface Debt {
  readonly ask: Ask
  readonly spent: readonly number[]
}

/** The debt of a charge made after the fact, as of now. */
export function debtOf({ ask, units }: LateCharge): Debt {
  return { ask, spent: [0, units] }
}

/** Greatest number of keys. */
const MOST_KEYS = 50_000
/** Greatest number of times for one key: beyond it, new tokens join the last ones, at the later time. */
const MOST_TIMES = 64

export class Debts {
  readonly #now: () => number
  readonly #owed = new BoundedMap<Owed>(MOST_KEYS)
  /** Keys whose debt is on its way to Redis. */
  readonly #told = new BoundedMap<true>(MOST_KEYS)

  /** @param now in milliseconds, from any origin */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Notes what this process granted by its own counters. Slots are left out: requests give them back. */
  owe(asks: readonly Ask[], answers: readonly Answer[]): void {
    for (const { key, demand } of grantedHere(asks, answers)) this.#note(key, costOf(demand))
  }

  /** Removes a grant that was not used after all. */
  forgive(asks: readonly Ask[], answers: readonly Answer[]): void {
    if (this.#owed.size === 0) return
    for (const { key, demand } of grantedHere(asks, answers)) {
      const spent = this.#owed.get(key)?.spent ?? []
      for (
        let rest = costOf(demand), last = spent.at(-1);
        rest > 0 && last !== undefined;
        last = spent.at(-1)
      ) {
        const taken = Math.min(rest, last.count)
        rest -= taken
        last.count -= taken
        if (last.count === 0) spent.pop()
      }
      if (spent.length === 0) this.#owed.delete(key)
    }
  }

  /** Removes and returns the debts of these keys. */
  settle(asks: readonly Ask[]): Debt[] {
    if (this.#owed.size === 0) return []
    const now = this.#now()
    return asks.flatMap(ask => {
      const owed = this.#owed.get(ask.key)
      if (owed === undefined) return []
      this.#owed.delete(ask.key)
      this.#told.set(ask.key, true)
      return [{ ask, spent: owed.spent.flatMap(({ at, count }) => [now - at, count]) }]
    })
  }

  /** True once for a key whose debt was sent to Redis: the counts that Redis answers then include it. */
  isCounted(key: string): boolean {
    if (this.#told.size === 0 || this.#told.get(key) === undefined || this.#owed.get(key) !== undefined)
      return false
    this.#told.delete(key)
    return true
  }

  forget(key: string): void {
    this.#owed.delete(key)
    this.#told.delete(key)
  }

  /** These charges did not arrive: they are owed again, as if spent now. */
  restore(debts: readonly Debt[]): void {
    for (const { ask, spent } of debts) {
      this.#told.delete(ask.key)
      for (let i = 1; i < spent.length; i += 2) this.#note(ask.key, spent[i] as number)
    }
  }

  #note(key: string, count: number): void {
    const at = this.#now()
    const spent = this.#owed.get(key)?.spent
    if (spent === undefined) {
      this.#owed.set(key, { spent: [{ at, count }] })
      return
    }
    const last = spent.at(-1)
    if (last !== undefined && (last.at === at || spent.length >= MOST_TIMES)) {
      last.at = at
      last.count += count
    } else spent.push({ at, count })
  }
}

function grantedHere(asks: readonly Ask[], answers: readonly Answer[]): Ask[] {
  return asks.filter(({ demand }, i) => {
    const answer = answers[i]
    return (
      demand.kind !== 'slots' && !tellsLater(demand) && answer?.granted === true && answer.store === 'local'
    )
  })
}
