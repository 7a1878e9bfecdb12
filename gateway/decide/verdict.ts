/** The verdict on a request, gathered from its rules' outcomes, and the slots that the request holds. */

import type { AnswerFields, UpstreamAnswer } from '../demand.js'
import type { Rule } from '../types.js'
import type { AnswerTail, Outcome, Verdict } from '../verdict.js'
import { Hold, type OnSlots, type SlotTerms } from './hold.js'
import type { EndedAnswer } from './reserve/settle.js'

/** Shared by the many requests that hold no slots. */
const NONE: readonly never[] = []

export class GatheredVerdict implements Verdict {
  allowed = true
  unlimited: string | undefined
  waitedMs: number | undefined
  settled: Promise<void> | undefined
  readonly outcomes: Outcome[] = []
  readonly reportOnly: Outcome[] = []
  readonly #onSlots: OnSlots
  #held: readonly Hold[] = NONE
  #leaving: readonly (() => void)[] = NONE
  #charges: readonly ((answer: UpstreamAnswer) => void)[] = NONE
  #status: number | undefined
  #fields: AnswerFields | undefined
  #settlements: readonly ((answer: EndedAnswer | undefined) => void)[] = NONE
  /** Undefined as long as no upstream is known to have dealt with the request. */
  #answer: EndedAnswer | undefined
  #upgraded = false
  #released = false

  /** `onSlots` is called for every slot taken and given back. */
  constructor(onSlots: OnSlots) {
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

  get holdsSlot(): boolean {
    return this.#held.some(({ rule }) => rule.mode === 'enforce')
  }

  /** A report-only slot that arrives after the request has ended is released at once. */
  hold(rule: Rule, release: () => void, terms: SlotTerms = {}): void {
    if (this.#released) {
      release()
      return
    }
    const hold = new Hold(rule, release, terms, ending => {
      this.#held = this.#held.filter(other => other !== hold)
      this.#onSlots(rule.id, -1, ending, hold)
    })
    this.#held = [...this.#held, hold]
    this.#onSlots(rule.id, 1, undefined, hold)
    if (this.#upgraded) this.upgraded()
  }

  /** Calls `leave` once, when the request has ended. */
  onRelease(leave: () => void): void {
    if (this.#released) leave()
    else this.#leaving = [...this.#leaving, leave]
  }

  /** Calls `charge` once with the upstream's response; at once if that came before a report-only rule was counted. */
  onAnswer(charge: (answer: UpstreamAnswer) => void): void {
    this.#charges = [...this.#charges, charge]
    this.#chargeAnswered()
  }

  answered(status: number, fields: AnswerFields): void {
    if (this.#status !== undefined) return
    this.#status = status
    this.#fields = fields
    this.#chargeAnswered()
  }

  #chargeAnswered(): void {
    const status = this.#status
    if (status === undefined || this.#charges.length === 0) return
    for (const charge of this.#charges) charge({ status, header: name => this.#fields?.get(name) })
    this.#charges = NONE
  }

  /** Calls `settle` once, when the request has ended: with the response, or undefined if it was sent to no upstream. */
  onSettle(settle: (answer: EndedAnswer | undefined) => void): void {
    if (this.#released) settle(this.#answer)
    else this.#settlements = [...this.#settlements, settle]
  }

  ended(tail: AnswerTail | undefined): void {
    this.#answer ??= { status: this.#status ?? 0, header: name => this.#fields?.get(name), tail }
  }

  upgraded(): void {
    this.#upgraded = true
    for (const hold of this.#held) if (!hold.lifetime) hold.end('given-back')
  }

  release(): void {
    this.#released = true
    for (const leave of this.#leaving) leave()
    this.#leaving = NONE
    for (const settle of this.#settlements) settle(this.#answer)
    this.#settlements = NONE
    for (const hold of this.#held) hold.end('given-back')
  }
}
