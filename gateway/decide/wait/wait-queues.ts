/**
 * Requests that wait until their rules have room, first come first served for each counter key. Nobody is charged, and
 * nobody holds a slot, while waiting. The first of a queue asks the store when its windows have room, and when something
 * of its key is given back in this process; those behind ask once they are first. A request that waits for several keys
 * has to be the first for each: as all queues have one order, that of arrival, somebody always is.
 */
import type { Question } from '../question.js'
import type { Answer } from '../store/store.js'
import { agedTo, pauseOf, type Refusal, type Tried } from './pause.js'
import { type Waiter, WaitQueue } from './wait-queue.js'

/** What became of a request that had to wait. */
export type WaitResult = 'admitted' | 'refused' | 'gone'

export interface WaitEnd {
  /** The last answers of the store, as of now. */
  readonly tried: Tried
  readonly waitedMs: number
}

export interface WaitParts {
  /** Milliseconds, from any origin. */
  now(): number
  /** Calls `call` after `ms`; returns what prevents that. */
  after(ms: number, call: () => void): () => void
  /** Requests of a rule that wait have become more, or fewer. */
  onWaiting?(rule: string, change: 1 | -1): void
  onWaited?(rule: string, result: WaitResult): void
}

/** A request that wants to wait. */
export interface Patient {
  /** Requests are numbered as they arrive. */
  readonly number: number
  readonly since: number
  readonly questions: readonly Question[]
  /** Asks the store for all questions. */
  ask(): Answer[] | Promise<Answer[]>
  /** Gives back what was granted after the client had left. */
  giveBack(answers: readonly Answer[]): void
}

export interface WaitingOfRule {
  readonly rule: string
  readonly waiting: number
  /** How long the first of them has been waiting, in milliseconds. */
  readonly oldest_ms: number
}

interface Place extends Waiter, Patient {
  resolve(end: WaitEnd): void
  reject(error: unknown): void
  cancel: () => void
}

const NOT_SET = () => {}

export class WaitQueues {
  readonly #parts: WaitParts
  readonly #queues = new Map<string, WaitQueue>()
  #arrivals = 0
  /** Queues of which the first may have to do something. */
  readonly #changed = new Set<WaitQueue>()
  #isAdvancing = false

  constructor(parts: WaitParts) {
    this.#parts = parts
  }

  get now(): number {
    return this.#parts.now()
  }

  /** A request arrives that may have to wait. */
  arrive(): { readonly number: number; readonly since: number } {
    this.#arrivals += 1
    return { number: this.#arrivals, since: this.#parts.now() }
  }

  /** True if others wait for one of these keys. */
  isBehind(questions: readonly Question[]): boolean {
    return this.#queues.size > 0 && questions.some(({ key }) => this.#queues.has(key))
  }

  /** The refusal of a request that cannot wait behind those who wait for one of its keys. */
  refusedBehind(questions: readonly Question[]): Tried | undefined {
    const now = this.#parts.now()
    const refusals = questions.flatMap(
      ({ key }) => this.#queues.get(key)?.refusalAtOnce(questions, now) ?? [],
    )
    return refusals.length === 0 ? undefined : triedOf(refusals, now)
  }

  /**
   * Waits for the request's turn. Rejects if the store does.
   *
   * @param tried why it was refused; undefined if it was not asked about, because others wait for the same
   */
  wait(patient: Patient, tried: Tried | undefined, leaveWith: (leave: () => void) => void): Promise<WaitEnd> {
    return new Promise((resolve, reject) => {
      const { number, since, questions } = patient
      const place: Place = {
        ...{ number, since, questions, resolve, reject, cancel: NOT_SET },
        ask: () => patient.ask(),
        giveBack: answers => patient.giveBack(answers),
        queues: new Set(),
        state: 'waiting',
        pause: undefined,
        tried,
        until: Number.POSITIVE_INFINITY,
      }
      if (tried !== undefined) this.#refused(place, tried)
      else if (this.#joinOthers(place)) this.#check(place)
      this.#advance()
      if (place.state !== 'ended') leaveWith(() => this.#end(place, 'gone'))
    })
  }

  /** Something that counts by `key` was given back in this process. */
  givenBack(key: string): void {
    const queue = this.#queues.get(key)
    if (queue === undefined) return
    queue.hasRoom = true
    this.#changed.add(queue)
    this.#advance()
  }

  /** By rule: how many requests wait. */
  byRule(): WaitingOfRule[] {
    const now = this.#parts.now()
    const rules = new Map<string, WaitingOfRule>()
    for (const { rule, length, first } of this.#queues.values()) {
      const { waiting = 0, oldest_ms = 0 } = rules.get(rule.id) ?? {}
      const oldest = Math.max(oldest_ms, Math.round(now - (first?.since ?? now)))
      rules.set(rule.id, { rule: rule.id, waiting: waiting + length, oldest_ms: oldest })
    }
    return [...rules.values()]
  }

  /** Lets the first of each changed queue do what there is to do, until nothing changes any more. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    try {
      for (const queue of this.#changed) {
        this.#changed.delete(queue)
        const { first } = queue
        if (first !== undefined) this.#check(first as Place)
        else if (this.#queues.get(queue.key) === queue) this.#queues.delete(queue.key)
      }
    } finally {
      this.#isAdvancing = false
    }
  }

  /** Asks the store if it is this request's turn; else waits for that, or for the end of its wait. */
  #check(place: Place): void {
    if (place.state !== 'waiting') return
    place.cancel()
    place.cancel = NOT_SET
    const now = this.#parts.now()
    const turn = this.#turnOf(place)
    if (turn <= now && this.#joinOthers(place) && this.#isFirst(place)) {
      this.#ask(place)
    } else if (place.until <= now) this.#end(place, 'refused')
    else if (place.state === 'waiting') {
      const next = turn > now ? Math.min(turn, place.until) : place.until
      place.cancel = this.#parts.after(next - now, () => {
        this.#check(place)
        this.#advance()
      })
    }
  }

  /** When the request may be admitted; infinite while others are before it. */
  #turnOf(place: Place): number {
    if (!this.#isFirst(place)) return Number.POSITIVE_INFINITY
    const { notBefore = 0, pollAt = 0 } = place.pause ?? {}
    let hasRoom = false
    let hasSlot = false
    for (const queue of place.queues) {
      if (!queue.hasRoom) continue
      if (queue.ofSlots) hasSlot = true
      else hasRoom = true
    }
    return Math.max(hasRoom ? 0 : notBefore, hasSlot ? 0 : pollAt)
  }

  #isFirst(place: Place): boolean {
    for (const queue of place.queues) if (queue.first !== place) return false
    return true
  }

  /** Takes a place in every queue of its keys. False if there is none, and the request is refused. */
  #joinOthers(place: Place): boolean {
    for (const { key } of place.questions) {
      const queue = this.#queues.get(key)
      if (queue !== undefined && !place.queues.has(queue) && !this.#join(place, queue)) return false
    }
    return true
  }

  #join(place: Place, queue: WaitQueue): boolean {
    const { waits } = place.questions.find(({ key }) => key === queue.key)?.rule ?? {}
    const isFull = waits === undefined || queue.length >= waits.most
    queue.add(place)
    this.#parts.onWaiting?.(queue.rule.id, 1)
    if (isFull) this.#end(place, 'refused')
    else place.until = Math.min(place.until, place.since + waits.ms)
    return !isFull
  }

  #leave(place: Place, queue: WaitQueue): void {
    queue.remove(place)
    this.#parts.onWaiting?.(queue.rule.id, -1)
    this.#changed.add(queue)
  }

  #ask(place: Place): void {
    const answers = this.#begin(place)
    if (!(answers instanceof Promise)) {
      this.#answered(place, answers)
      return
    }
    this.#await(place, answers)
    for (const like of this.#likeFirst(place)) {
      const answers = this.#begin(like)
      if (answers instanceof Promise) this.#await(like, answers)
      else this.#answered(like, answers)
    }
  }

  /**
   * Those right behind who ask for the same as the first one: a store far away is asked for all of them in one call,
   * which admits the first of them.
   */
  #likeFirst({ questions, queues }: Place): Place[] {
    const [question, other] = questions
    if (question === undefined || other !== undefined || question.demand.kind === 'slots') return []
    const [queue] = queues
    const waiters = (queue?.waiters ?? []) as readonly Place[]
    const isLike = (place: Place) =>
      place.state !== 'ended' &&
      place.questions.length === 1 &&
      place.questions[0]?.demand === question.demand
    const end = waiters.findIndex(place => !isLike(place))
    return waiters.slice(1, end < 0 ? undefined : end).filter(({ state }) => state === 'waiting')
  }

  #begin(place: Place): Answer[] | Promise<Answer[]> {
    place.state = 'asking'
    place.cancel()
    place.cancel = NOT_SET
    for (const queue of place.queues) queue.hasRoom = false
    return place.ask()
  }

  #await(place: Place, answers: Promise<Answer[]>): void {
    answers
      .then(given => this.#answered(place, given))
      .catch(error => {
        place.reject(error)
        this.#end(place, 'refused')
      })
      .then(() => this.#advance())
  }

  #answered(place: Place, answers: readonly Answer[]): void {
    const isGranted = answers.every(({ granted }) => granted)
    if (place.state === 'ended') {
      if (!isGranted) return
      place.giveBack(answers)
      for (const { key } of place.questions) this.givenBack(key)
      return
    }
    place.state = 'waiting'
    const tried = { questions: place.questions, answers, at: this.#parts.now() }
    if (isGranted) {
      place.tried = tried
      // There may be more slots than this one.
      for (const queue of place.queues) queue.hasRoom ||= queue.ofSlots
      this.#end(place, 'admitted')
    } else this.#refused(place, tried)
  }

  /** Waits for the rules that have refused the request, and for no others. */
  #refused(place: Place, tried: Tried): void {
    place.tried = tried
    const pause = pauseOf(tried, place.since)
    if (pause === undefined) {
      this.#end(place, 'refused')
      return
    }
    place.pause = pause
    place.until = pause.until
    const refusals = new Map(pause.refusals.map(one => [one.question.key, one]))
    for (const queue of [...place.queues]) {
      if (refusals.has(queue.key)) continue
      queue.hasRoom = true
      this.#leave(place, queue)
    }
    for (const refusal of refusals.values()) {
      const queue = this.#queueOf(refusal)
      queue.refused(refusal)
      if (!place.queues.has(queue) && !this.#join(place, queue)) return
    }
    for (const queue of [...place.queues]) {
      this.#changed.add(queue)
      if (queue.first !== place) continue
      for (const late of queue.hopeless(tried.at)) this.#end(late as Place, 'refused')
    }
    this.#check(place)
  }

  #queueOf(refusal: Refusal): WaitQueue {
    const { key } = refusal.question
    const queue = this.#queues.get(key) ?? new WaitQueue(refusal)
    this.#queues.set(key, queue)
    return queue
  }

  #end(place: Place, result: WaitResult): void {
    if (place.state === 'ended') return
    place.state = 'ended'
    place.cancel()
    const now = this.#parts.now()
    const refusals = [...place.queues].map(queue => queue.refusalOf(place.questions))
    const tried = place.tried ? agedTo(now, place.tried) : triedOf(refusals, now)
    for (const queue of [...place.queues]) {
      this.#leave(place, queue)
      this.#parts.onWaited?.(queue.rule.id, result)
    }
    place.resolve({ tried, waitedMs: now - place.since })
    this.#advance()
  }
}

/** What was said at different times, as of `now`. */
function triedOf(refusals: readonly Refusal[], now: number): Tried {
  const questions = refusals.map(({ question }) => question)
  const answers = refusals.flatMap(
    ({ question, answer, at }) => agedTo(now, { questions: [question], answers: [answer], at }).answers,
  )
  return { questions, answers, at: now }
}
