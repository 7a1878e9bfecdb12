/**
 * Requests in flight in this process that a report-only in-flight rule would have refused: it lets them pass, so they are
 * in flight in addition to those that hold its slots.
 */
import type { Outcome, Reading } from '../verdict.js'
import type { GatheredVerdict } from './verdict.js'

export class Overflow {
  readonly #counts = new Map<string, number>()

  /** Adds a request until its verdict is released. Returns its outcome with those before it, and itself, as used slots. */
  entered(outcome: Outcome, verdict: GatheredVerdict): Outcome {
    const { key } = outcome
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    verdict.onRelease(() => this.#leave(key))
    const readings = outcome.readings.map(
      (reading): Reading => ({ ...reading, used: reading.used && reading.used + count }),
    )
    return { ...outcome, readings }
  }

  #leave(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1
    if (left > 0) this.#counts.set(key, left)
    else this.#counts.delete(key)
  }
}
