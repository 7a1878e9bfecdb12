/**
 * What is to be given back to Redis once it can be reached. A refund that failed on its way is not among it: Redis may
 * have executed it, and there must never be more room than what was really spent.
 */
import type { Answer, Ask } from '../store/store.js'

export interface Refund {
  readonly ask: Ask
  /** The answer that the ask was granted by. */
  readonly answer: Answer
}

/** Some 300 bytes each. What is beyond it ends with its window. */
const MOST = 50_000

export class Refunds {
  readonly #byKey = new Map<string, Refund[]>()
  #count = 0

  get isEmpty(): boolean {
    return this.#count === 0
  }

  add(refund: Refund): void {
    if (this.#count >= MOST) return
    const { key } = refund.ask
    const before = this.#byKey.get(key)
    if (before === undefined) this.#byKey.set(key, [refund])
    else before.push(refund)
    this.#count += 1
  }

  /** Takes out the refunds of these keys. */
  take(asks: readonly Ask[]): readonly Refund[] {
    return this.isEmpty ? [] : asks.flatMap(({ key }) => this.#takeOf(key))
  }

  /** Takes out at least one and about `most` of the keys for which `isDue`, if there are any. */
  takeSome(most: number, isDue: (key: string) => boolean): readonly Refund[] {
    const taken: Refund[] = []
    for (const key of this.#byKey.keys()) {
      if (taken.length >= most) break
      if (isDue(key)) taken.push(...this.#takeOf(key))
    }
    return taken
  }

  forget(key: string): void {
    this.#takeOf(key)
  }

  #takeOf(key: string): readonly Refund[] {
    const refunds = this.#byKey.get(key) ?? []
    this.#byKey.delete(key)
    this.#count -= refunds.length
    return refunds
  }
}
