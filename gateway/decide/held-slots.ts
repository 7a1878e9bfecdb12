/** The slots that requests of this process hold now, for those who ask. */
import type { Hold, OnSlots } from './hold.js'

/** One slot. Times in milliseconds. */
export interface HeldSlot {
  readonly rule: string
  readonly kind: string
  readonly mode: string
  /** The pattern that its request matched. */
  readonly route: string | null
  /** What it is counted by; what may be personal stands in it as a keyed hash. */
  readonly key: string | null
  readonly age_ms: number
}

/** How many are held, and the oldest of them. */
export interface Slots {
  readonly total: number
  readonly slots: readonly HeldSlot[]
}

export class HeldSlots {
  readonly #holds = new Set<Hold>()

  /** Takes note, then passes it on. */
  noting(next: OnSlots): OnSlots {
    return (rule, change, ending, hold) => {
      if (hold !== undefined) change === 1 ? this.#holds.add(hold) : this.#holds.delete(hold)
      next(rule, change, ending, hold)
    }
  }

  /** How many there are, and the `most` oldest of them. */
  oldest(most: number): Slots {
    const now = performance.now()
    const slots: HeldSlot[] = []
    // A set keeps the order in which they were taken.
    for (const { rule, key, route, since } of this.#holds) {
      if (slots.length === most) break
      const { id, kind, mode } = rule
      slots.push({
        rule: id,
        kind,
        mode,
        route: route ?? null,
        key: key ?? null,
        age_ms: Math.round(now - since),
      })
    }
    return { total: this.#holds.size, slots }
  }
}
