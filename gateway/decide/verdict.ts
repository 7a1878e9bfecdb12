/** The request's answer as it comes together from its rules' outcomes, and the slots it holds. */
import type { Outcome, Rule, Verdict } from '../types.js'

interface Held {
  readonly rule: Rule
  readonly release: () => void
}

export class GatheredVerdict implements Verdict {
  allowed = true
  holdsSlot = false
  settled: Promise<void> | undefined
  readonly outcomes: Outcome[] = []
  readonly reportOnly: Outcome[] = []
  readonly #onSlots: (rule: string, change: number) => void
  #held: Held[] = []
  #released = false

  /** `onSlots` hears of every slot taken and given back. */
  constructor(onSlots: (rule: string, change: number) => void) {
    this.#onSlots = onSlots
  }

  add(outcome: Outcome): void {
    if (outcome.rule.mode === 'report-only') {
      this.reportOnly.push(outcome)
    } else {
      this.outcomes.push(outcome)
      if (outcome.result !== 'allowed') this.allowed = false
    }
  }

  /** A report-only slot may come after the request has ended: then it goes back at once. */
  hold(rule: Rule, release: () => void): void {
    if (this.#released) {
      release()
      return
    }
    this.#held.push({ rule, release })
    this.#onSlots(rule.id, 1)
    if (rule.mode === 'enforce') this.holdsSlot = true
  }

  release(): void {
    this.#released = true
    const held = this.#held
    this.#held = []
    for (const { rule, release } of held) {
      release()
      this.#onSlots(rule.id, -1)
    }
  }
}
