/** One request whose rules let it wait: what becomes of it before, and after, the store was asked for it. */
import type { Denials } from '../denials.js'
import type { DecideRequest, Question } from '../question.js'
import type { Answer, CounterStore } from '../store/store.js'
import { pauseOf, type Tried } from './pause.js'
import type { WaitQueues } from './wait-queues.js'
import type { Patient, WaitEnd } from './waiter.js'

interface TurnParts {
  readonly queues: WaitQueues
  readonly store: CounterStore
  readonly denials: Pick<Denials, 'empty' | 'recall'>
}

export class Turn implements Patient {
  readonly number: number
  readonly since: number
  readonly questions: readonly Question[]
  readonly #parts: TurnParts
  readonly #request: DecideRequest
  /** Why it has to wait, or is refused; undefined if it was not asked about. */
  #refused: Tried | undefined
  #tries = 0

  /** @param questions those of its enforced rules */
  constructor(questions: readonly Question[], request: DecideRequest, parts: TurnParts) {
    const { number, since } = parts.queues.arrive()
    this.number = number
    this.since = since
    this.questions = questions
    this.#parts = parts
    this.#request = request
  }

  /** Without asking the store: whether it may be asked, or the request has to wait; or why it is refused. */
  begin(): 'asks' | 'waits' | Tried {
    const { queues } = this.#parts
    const behind = queues.byKey.refusedBehind(this.questions, queues.now)
    if (behind !== undefined) return behind
    const known = this.#recalled()
    if (known !== undefined) {
      if (!this.mayWait(known)) return known
      this.#refused = known
      return 'waits'
    }
    return queues.byKey.isBehind(this.questions) ? 'waits' : 'asks'
  }

  /** The store was asked: true if it has refused the request, which then waits. */
  waitsAfter(answers: readonly Answer[]): boolean {
    if (answers.every(({ granted }) => granted)) return false
    const tried = { questions: this.questions, answers, at: this.#parts.queues.now }
    if (!this.mayWait(tried)) return false
    this.#refused = tried
    return true
  }

  /** Waits until it is admitted, refused, or its client has left. */
  end(): Promise<WaitEnd> {
    const { client, waits } = this.#request
    waits?.()
    return this.#parts.queues.wait(this, this.#refused, leave => {
      if (client?.closed) leave()
      else client?.watch({ onClose: leave })
    })
  }

  ask(): Answer[] | Promise<Answer[]> {
    const { storeCalled, facts } = this.#request
    this.#tries += 1
    const startedAt = performance.now()
    // A slot that an earlier call may have taken, unheard, is given back by the name of that call.
    const answers = this.#parts.store.take(this.questions, `${facts.id}.${this.#tries}`)
    if (storeCalled === undefined) return answers
    if (!(answers instanceof Promise)) storeCalled(startedAt, false)
    else return answers.finally(() => storeCalled(startedAt, true))
    return answers
  }

  look(question: Question, units: number): Answer | undefined | Promise<Answer | undefined> {
    const { demand } = question
    if (demand.kind !== 'windows' || demand.lease || demand.windows.some(({ quota }) => quota < units)) return
    const seen = this.#parts.store.peek([{ ...question, demand: { ...demand, cost: units } }])
    return seen instanceof Promise ? seen.then(([answer]) => answer) : seen[0]
  }

  giveBack(answers: readonly Answer[]): void {
    this.#parts.store.giveBack(this.questions, answers)
  }

  /** True if its rules let the request wait after such an answer. */
  mayWait(tried: Pick<Tried, 'questions' | 'answers'>): boolean {
    return pauseOf({ ...tried, at: this.#parts.queues.now }, this.since) !== undefined
  }

  /** The remembered refusals of its rules. */
  #recalled(): Tried | undefined {
    const { denials, queues } = this.#parts
    if (denials.empty) return undefined
    const questions: Question[] = []
    const answers: Answer[] = []
    for (const question of this.questions) {
      const refusal = denials.recall(question)
      if (refusal === undefined) continue
      questions.push(question)
      answers.push(refusal)
    }
    return questions.length === 0 ? undefined : { questions, answers, at: queues.now }
  }
}
