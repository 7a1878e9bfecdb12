/** The queues of all counter keys that requests wait for, and what they tell those who have no place in one. */
import type { Question } from '../question.js'
import { agedTo, type Refusal, type Tried } from './pause.js'
import { WaitQueue } from './wait-queue.js'

export interface WaitingOfRule {
  readonly rule: string
  readonly waiting: number
  /** How long the first of them has been waiting, in milliseconds. */
  readonly oldest_ms: number
}

export class QueueMap {
  readonly #queues = new Map<string, WaitQueue>()

  get(key: string): WaitQueue | undefined {
    return this.#queues.get(key)
  }

  /** The queue of a refused key; a new one if nobody waits for it. */
  of(refusal: Refusal): WaitQueue {
    const { key } = refusal.question
    const queue = this.#queues.get(key) ?? new WaitQueue(refusal)
    this.#queues.set(key, queue)
    return queue
  }

  delete(queue: WaitQueue): void {
    if (this.#queues.get(queue.key) === queue) this.#queues.delete(queue.key)
  }

  /** True if somebody waits for one of these keys. */
  isBehind(questions: readonly Question[]): boolean {
    return this.#queues.size > 0 && questions.some(one => this.#queues.get(one.key)?.isFor(one) === true)
  }

  /** The refusal of a request that cannot wait behind those who wait for one of its keys. */
  refusedBehind(questions: readonly Question[], now: number): Tried | undefined {
    if (this.#queues.size === 0) return undefined
    const refusals = questions.flatMap(one => {
      const queue = this.#queues.get(one.key)
      return queue?.isFor(one) ? (queue.refusalAtOnce(questions, now) ?? []) : []
    })
    return refusals.length === 0 ? undefined : triedOf(refusals, now)
  }

  /** By rule: how many requests wait. */
  byRule(now: number): WaitingOfRule[] {
    const rules = new Map<string, WaitingOfRule>()
    for (const { rule, length, first } of this.#queues.values()) {
      const { waiting = 0, oldest_ms = 0 } = rules.get(rule.id) ?? {}
      const oldest = Math.max(oldest_ms, Math.round(now - (first?.since ?? now)))
      rules.set(rule.id, { rule: rule.id, waiting: waiting + length, oldest_ms: oldest })
    }
    return [...rules.values()]
  }
}

/** What was said at different times, as of `now`. */
export function triedOf(refusals: readonly Refusal[], now: number): Tried {
  const questions = refusals.map(({ question }) => question)
  const answers = refusals.flatMap(
    ({ question, answer, at }) => agedTo(now, { questions: [question], answers: [answer], at }).answers,
  )
  return { questions, answers, at: now }
}
