/**
 * What was admitted locally while Redis was away, until Redis has counted it. Without it a late call or a short
 * outage would grant the quota twice, once here and once there.
 */
import { BoundedMap } from '../store/bounded-map.js'
import { type Answer, type Ask, costOf, isChargedLater, type LateCharge } from '../store/store.js'

/** Tokens spent locally: when and how many, oldest first. */
interface Owed {
  readonly spent: { at: number; count: number }[]
}

/** What Redis has yet to count for one key: age in milliseconds, count, age, count, … */
export interface BacklogEntry {
  readonly ask: Ask
  readonly spent: readonly number[]
}

/** The backlog of a charge made after the fact, as of now. */
export function backlogEntry({ ask, units }: LateCharge): BacklogEntry {
  return { ask, spent: [0, units] }
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

  /** Takes out the entries of these keys. */
  settle(asks: readonly Ask[]): BacklogEntry[] {
    if (this.#owed.size === 0) return []
    const now = this.#now()
    return asks.flatMap(ask => {
      const owed = this.#owed.get(ask.key)
      if (owed === undefined) return []
      this.#owed.delete(ask.key)
      this.#sent.set(ask.key, true)
      return [{ ask, spent: owed.spent.flatMap(({ at, count }) => [now - at, count]) }]
    })
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
    for (const { ask, spent } of backlog) {
      this.#sent.delete(ask.key)
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
      demand.kind !== 'slots' &&
      !isChargedLater(demand) &&
      answer?.granted === true &&
      answer.store === 'local'
    )
  })
}
