/**
 * Requests that wait until their rules have room, first come first served for each counter key. Nobody is charged, and
 * nobody holds a slot, while waiting. The first of a queue asks the store when its windows have room, and when something
 * of its key is given back in this process; those behind ask once they are first. A request that waits for several keys
 * has to be the first for each: as all queues have one order, that of arrival, somebody always is.
 */
import type { Answer } from '../store/store.js'
import { foresee } from './foresee.js'
import { agedTo, pauseOf, type Tried } from './pause.js'
import { QueueMap, triedOf, type WaitingOfRule } from './queue-map.js'
import type { WaitQueue } from './wait-queue.js'
import {
  alikeBehind,
  holdsUp,
  isFirst,
  type Patient,
  turnOf,
  type WaitEnd,
  type Waiter,
  type WaitResult,
} from './waiter.js'

export interface WaitParts {
  /** Milliseconds, from any origin. */
  now(): number
  /** Calls `call` after `ms`; returns what prevents that. */
  after(ms: number, call: () => void): () => void
  /** Requests of a rule that wait have become more, or fewer. */
  onWaiting?(rule: string, change: 1 | -1): void
  onWaited?(rule: string, result: WaitResult): void
}

const NOT_SET = () => {}

export class WaitQueues {
  readonly #parts: WaitParts
  readonly byKey = new QueueMap()
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

  /**
   * Waits for the request's turn. Rejects if the store does.
   *
   * @param tried why it was refused; undefined if it was not asked about, because others wait for the same
   */
  wait(patient: Patient, tried: Tried | undefined, leaveWith: (leave: () => void) => void): Promise<WaitEnd> {
    return new Promise((resolve, reject) => {
      const { number, since, questions } = patient
      const waiter: Waiter = {
        ...{ number, since, questions, resolve, reject, cancel: NOT_SET },
        ask: () => patient.ask(),
        look: (question, units) => patient.look(question, units),
        giveBack: answers => patient.giveBack(answers),
        queues: new Set(),
        state: 'waiting',
        pause: undefined,
        tried,
        until: Number.POSITIVE_INFINITY,
      }
      if (tried !== undefined) this.#refused(waiter, tried)
      else if (this.#joinOthers(waiter)) {
        foresee(
          waiter,
          () => this.now,
          () => this.#end(waiter, 'refused'),
        )
        this.#check(waiter)
      }
      this.#advance()
      if (waiter.state !== 'ended') leaveWith(() => this.#end(waiter, 'gone'))
    })
  }

  /** Something that counts by `key` was given back in this process. */
  givenBack(key: string): void {
    const queue = this.byKey.get(key)
    if (queue === undefined) return
    queue.givenBack()
    this.#changed.add(queue)
    this.#advance()
  }

  /** By rule: how many requests wait. */
  byRule(): WaitingOfRule[] {
    return this.byKey.byRule(this.#parts.now())
  }

  /** Lets the first of each changed queue do what there is to do, until nothing changes any more. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    try {
      for (const queue of this.#changed) {
        this.#changed.delete(queue)
        if (queue.length === 0) this.byKey.delete(queue)
        else this.#checkFront(queue)
      }
    } finally {
      this.#isAdvancing = false
    }
  }

  /** Up to the first who holds up those behind it. */
  #checkFront(queue: WaitQueue): void {
    for (const waiter of [...queue.waiters]) {
      this.#check(waiter)
      if (waiter.queues.has(queue) && holdsUp(waiter, queue, this.#parts.now())) return
    }
  }

  /** Asks the store if it is this request's turn; else waits for that, or for the end of its wait. */
  #check(waiter: Waiter): void {
    if (waiter.state !== 'waiting') return
    waiter.cancel()
    waiter.cancel = NOT_SET
    const now = this.#parts.now()
    const turn = turnOf(waiter, now)
    if (turn <= now && this.#joinOthers(waiter) && isFirst(waiter, now)) {
      this.#ask(waiter)
    } else if (waiter.until <= now) this.#end(waiter, 'refused')
    else if (waiter.state === 'waiting') {
      const next = turn > now ? Math.min(turn, waiter.until) : waiter.until
      waiter.cancel = this.#parts.after(next - now, () => {
        this.#check(waiter)
        this.#advance()
      })
    }
  }

  /** Takes a place in every queue of its keys. False if there is none, and the request is refused. */
  #joinOthers(waiter: Waiter): boolean {
    for (const { key } of waiter.questions) {
      const queue = this.byKey.get(key)
      if (queue !== undefined && !waiter.queues.has(queue) && !this.#join(waiter, queue)) return false
    }
    return true
  }

  #join(waiter: Waiter, queue: WaitQueue): boolean {
    const { waits } = waiter.questions.find(({ key }) => key === queue.key)?.rule ?? {}
    const isFull = waits === undefined || queue.length >= waits.most
    queue.add(waiter)
    this.#parts.onWaiting?.(queue.rule.id, 1)
    if (isFull) this.#end(waiter, 'refused')
    else waiter.until = Math.min(waiter.until, waiter.since + waits.ms)
    return !isFull
  }

  #leave(waiter: Waiter, queue: WaitQueue): void {
    queue.remove(waiter)
    this.#parts.onWaiting?.(queue.rule.id, -1)
    this.#changed.add(queue)
  }

  #ask(waiter: Waiter): void {
    const answers = this.#begin(waiter)
    if (!(answers instanceof Promise)) {
      this.#answered(waiter, answers)
      return
    }
    this.#await(waiter, answers)
    for (const like of alikeBehind(waiter)) {
      const answers = this.#begin(like)
      if (answers instanceof Promise) this.#await(like, answers)
      else this.#answered(like, answers)
    }
  }

  #begin(waiter: Waiter): Answer[] | Promise<Answer[]> {
    waiter.state = 'asking'
    waiter.cancel()
    waiter.cancel = NOT_SET
    for (const queue of waiter.queues) queue.hasRoom = false
    return waiter.ask()
  }

  #await(waiter: Waiter, answers: Promise<Answer[]>): void {
    answers
      .then(given => this.#answered(waiter, given))
      .catch(error => {
        waiter.reject(error)
        this.#end(waiter, 'refused')
      })
      .then(() => this.#advance())
  }

  #answered(waiter: Waiter, answers: readonly Answer[]): void {
    const isGranted = answers.every(({ granted }) => granted)
    if (waiter.state === 'ended') {
      if (!isGranted) return
      waiter.giveBack(answers)
      for (const { key } of waiter.questions) this.givenBack(key)
      return
    }
    waiter.state = 'waiting'
    const tried = { questions: waiter.questions, answers, at: this.#parts.now() }
    if (isGranted) {
      waiter.tried = tried
      // There may be more slots than this one.
      for (const queue of waiter.queues) {
        queue.hasRoom ||= queue.ofSlots
        queue.admitted(waiter)
      }
      this.#end(waiter, 'admitted')
    } else this.#refused(waiter, tried)
  }

  /** Waits for the rules that have refused the request, and for no others. */
  #refused(waiter: Waiter, tried: Tried): void {
    waiter.tried = tried
    const pause = pauseOf(tried, waiter.since)
    if (pause === undefined) {
      this.#end(waiter, 'refused')
      return
    }
    waiter.pause = pause
    waiter.until = pause.until
    const refusals = new Map(pause.refusals.map(one => [one.question.key, one]))
    for (const queue of [...waiter.queues]) {
      if (refusals.has(queue.key)) continue
      queue.hasRoom = true
      this.#leave(waiter, queue)
    }
    for (const refusal of refusals.values()) {
      const queue = this.byKey.of(refusal)
      queue.refused(refusal)
      if (!waiter.queues.has(queue) && !this.#join(waiter, queue)) return
    }
    for (const queue of [...waiter.queues]) {
      this.#changed.add(queue)
      if (queue.first !== waiter) continue
      for (const late of queue.hopeless(tried.at)) this.#end(late, 'refused')
    }
    this.#check(waiter)
  }

  #end(waiter: Waiter, result: WaitResult): void {
    if (waiter.state === 'ended') return
    waiter.state = 'ended'
    waiter.cancel()
    const now = this.#parts.now()
    const refusals = [...waiter.queues].map(queue => queue.refusalOf(waiter.questions))
    const tried = waiter.tried ? agedTo(now, waiter.tried) : triedOf(refusals, now)
    for (const queue of [...waiter.queues]) {
      this.#leave(waiter, queue)
      this.#parts.onWaited?.(queue.rule.id, result)
    }
    waiter.resolve({ tried, waitedMs: now - waiter.since })
    this.#advance()
  }
}
