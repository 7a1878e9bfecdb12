/**
 * What is to be given back to Redis once it can be reached. A refund that failed on its way is not among it: Redis may
 * have executed it, and there must never be more room than what was really spent.
 */
import { BoundedMap } from '../store/bounded-map.js'
import type { Answer, Ask } from '../store/store.js'

export interface Refund {
  readonly ask: Ask
  /** The answer that the ask was granted by. */
  readonly answer: Answer
}

const MOST_KEYS = 10_000
/** For one key; what is beyond it ends with its window. */
const MOST_REFUNDS = 100

export class Refunds {
  readonly #byKey = new BoundedMap<readonly Refund[]>(MOST_KEYS)

  add(refund: Refund): void {
    const before = this.#byKey.get(refund.ask.key) ?? []
    if (before.length < MOST_REFUNDS) this.#byKey.set(refund.ask.key, [...before, refund])
  }

  /** Takes out the refunds of these keys. */
  take(asks: readonly Ask[]): readonly Refund[] {
    if (this.#byKey.size === 0) return []
    return asks.flatMap(({ key }) => {
      const refunds = this.#byKey.get(key) ?? []
      this.#byKey.delete(key)
      return refunds
    })
  }

  forget(key: string): void {
    this.#byKey.delete(key)
  }
}
