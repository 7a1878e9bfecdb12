/** The request's answer as it comes together from its rules' outcomes, and the slots it holds. */
import type { Outcome, Rule, Verdict } from '../types.js'

interface Held {
  readonly rule: Rule
  readonly release: () => void
}

export class GatheredVerdict implements Verdict {
  allowed = true
  holdsSlot = false
  readonly outcomes: Outcome[] = []
  readonly reportOnly: Outcome[] = []
  readonly #onSlots: (rule: string, change: number) => void
  #held: Held[] = []

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

  hold(rule: Rule, release: () => void): void {
    this.#held.push({ rule, release })
    this.#onSlots(rule.id, 1)
    if (rule.mode === 'enforce') this.holdsSlot = true
  }

  release(): void {
    const held = this.#held
    this.#held = []
    for (const { rule, release } of held) {
      release()
      this.#onSlots(rule.id, -1)
    }
  }
}
