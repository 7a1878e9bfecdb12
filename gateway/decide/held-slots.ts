/** The slots that requests of this process hold now. */
import type { Mode } from '../types.js'
import type { Hold, OnSlots } from './hold.js'

export interface HeldSlot {
  readonly age_ms: number
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  readonly route: string | null
  readonly key: string | null
}

/** How many are held, and the oldest of them. Plain data. */
export interface Slots {
  readonly total: number
  readonly slots: readonly HeldSlot[]
}

export interface SlotsOfRule {
  readonly rule: string
  readonly held: number
  /** Age of the oldest in milliseconds. */
  readonly oldest_ms: number
}

export class HeldSlots {
  readonly #holds = new Set<Hold>()

  /** Records the slot, then passes the event on. */
  noting(next: OnSlots): OnSlots {
    return (rule, change, ending, hold) => {
      if (hold !== undefined) change === 1 ? this.#holds.add(hold) : this.#holds.delete(hold)
      next(rule, change, ending, hold)
    }
  }

  /** How many there are, and the `most` oldest. E-mail addresses, paths and headers are in the keys only as hashes. */
  oldest(most: number): Slots {
    const now = performance.now()
    // A set keeps the order of insertion.
    const oldest = Array.from(this.#holds).slice(0, most)
    const slots = oldest.map(({ rule: { id, kind, mode }, key = null, route = null, since }) => ({
      ...{ rule: id, kind, mode, route, key },
      age_ms: Math.round(now - since),
    }))
    return { total: this.#holds.size, slots }
  }

  /** By rule: how many there are, and the age of the oldest in milliseconds. */
  byRule(): SlotsOfRule[] {
    const now = performance.now()
    const rules = new Map<string, { rule: string; held: number; oldest_ms: number }>()
    for (const { rule, since } of this.#holds) {
      const one = rules.get(rule.id)
      if (one === undefined)
        rules.set(rule.id, { rule: rule.id, held: 1, oldest_ms: Math.round(now - since) })
      else one.held += 1
    }
    return [...rules.values()]
  }
}
