/** Those who wait for one counter key, in the order in which they have arrived. */
import type { Rule } from '../../types.js'
import type { Question } from '../question.js'
import { costOf, sameQuota } from '../store/store.js'
import { behindFirst, type Refusal, refusedLike } from './pause.js'
import type { Waiter } from './waiter.js'

/** Other gateways may give something back: what was seen counts for this long. */
const SEEN_MS = 1000

export class WaitQueue {
  readonly key: string
  readonly rule: Rule
  readonly ofSlots: boolean
  /** Something was given back since the store was last asked. */
  hasRoom = false
  #refusal: Refusal
  /** There is no room for so many units before `at`; holds until `until`. */
  #full: { units: number; readonly at: number; readonly until: number } | undefined
  readonly #waiters: Waiter[] = []

  constructor(refusal: Refusal) {
    const { question } = refusal
    this.key = question.key
    this.rule = question.rule
    this.ofSlots = question.demand.kind === 'slots'
    this.#refusal = refusal
  }

  get length(): number {
    return this.#waiters.length
  }

  get first(): Waiter | undefined {
    return this.#waiters[0]
  }

  get waiters(): readonly Waiter[] {
    return this.#waiters
  }

  /** False for a request under another limit than those who wait: the limit was edited since. */
  isFor({ demand }: Question): boolean {
    return demand.kind === 'slots' || sameQuota(this.#refusal.question.demand, demand)
  }

  /** The store has refused its key again. */
  refused(refusal: Refusal): void {
    this.#refusal = refusal
  }

  /** There was no room for all up to this waiter before `at`. */
  noRoomBefore(at: number, waiter: Waiter, now: number): void {
    this.#full = { units: this.unitsUpTo(waiter), at, until: now + SEEN_MS }
  }

  /** What a waiter waited for is used now. */
  admitted({ questions }: Waiter): void {
    if (this.#full !== undefined) this.#full.units -= costOf(this.questionIn(questions).demand)
  }

  givenBack(): void {
    this.hasRoom = true
    this.#full = undefined
  }

  /** What this waiter and those before it ask for. */
  unitsUpTo(waiter: Waiter): number {
    return this.#unitsOf(this.#waiters.slice(0, this.#waiters.indexOf(waiter) + 1))
  }

  add(waiter: Waiter): void {
    const at = this.#waiters.findLastIndex(({ number }) => number < waiter.number) + 1
    this.#waiters.splice(at, 0, waiter)
    waiter.queues.add(this)
  }

  remove(waiter: Waiter): void {
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
    waiter.queues.delete(this)
  }

  /** The refusal of a request that waits here, or wanted to, and was never asked about itself. */
  refusalOf(questions: readonly Question[]): Refusal {
    return refusedLike(this.#refusal, this.questionIn(questions))
  }

  /** Why a further request cannot wait here, if there are too many, or they take until after the end of its wait. */
  refusalAtOnce(questions: readonly Question[], now: number): Refusal | undefined {
    const question = this.questionIn(questions)
    const { waits } = question.rule
    const mayWait = waits !== undefined && this.length < waits.most
    if (mayWait && this.#earliest(now, question, this.#unitsOf(this.#waiters)) <= now + waits.ms)
      return undefined
    return this.refusalOf(questions)
  }

  /** Those who cannot be admitted before the end of their wait, as the first is not before its own turn. */
  hopeless(now: number): Waiter[] {
    let ahead = 0
    return this.#waiters.filter((waiter, i) => {
      const question = this.questionIn(waiter.questions)
      const isLate = i > 0 && this.#earliest(now, question, ahead) > waiter.until
      if (!isLate) ahead += costOf(question.demand)
      return isLate
    })
  }

  /** When a request can be admitted at the earliest, if `ahead` units are for others. */
  #earliest(now: number, question: Question, ahead: number): number {
    const { first } = this
    if (first === undefined) return now
    const turn = Math.max(now, first.pause?.notBefore ?? now)
    const [firstCost, own] = [costOf(this.questionIn(first.questions).demand), costOf(question.demand)]
    const earliest = turn + behindFirst(this.#refusal, firstCost, ahead, own)
    const full = this.#full
    return full !== undefined && full.until > now && ahead + own >= full.units
      ? Math.max(earliest, full.at)
      : earliest
  }

  #unitsOf(waiters: readonly Waiter[]): number {
    return waiters.reduce((sum, { questions }) => sum + costOf(this.questionIn(questions).demand), 0)
  }

  /** The question that asks for this key. */
  questionIn(questions: readonly Question[]): Question {
    return questions.find(({ key }) => key === this.key) as Question
  }
}
