/**
 * Charges that no request waits for. Those of one turn of the event loop are sent together, merged per counter.
 */
import type { LateCharge } from '../store/store.js'

export class LateCharges {
  readonly #send: (charges: readonly LateCharge[]) => void
  /** By the counter's key. */
  #waiting = new Map<string, LateCharge>()

  constructor(send: (charges: readonly LateCharge[]) => void) {
    this.#send = send
  }

  add(charges: readonly LateCharge[]): void {
    if (this.#waiting.size === 0) setImmediate(() => this.send())
    for (const { ask, units } of charges) {
      const before = this.#waiting.get(ask.key)?.units ?? 0
      this.#waiting.set(ask.key, { ask, units: before + units })
    }
  }

  /** Sends what is waiting now. */
  send(): void {
    if (this.#waiting.size === 0) return
    const charges = [...this.#waiting.values()]
    this.#waiting = new Map()
    this.#send(charges)
  }
}
