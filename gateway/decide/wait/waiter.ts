/** One request that waits, and its place in the queues of the keys that it waits for. */
import type { Question } from '../question.js'
import type { Answer } from '../store/store.js'
import { type Pause, roomAt, type Tried } from './pause.js'
import type { WaitQueue } from './wait-queue.js'

/** What became of a request that had to wait. */
export type WaitResult = 'admitted' | 'refused' | 'gone'

export interface WaitEnd {
  /** The last answers of the store, as of now. */
  readonly tried: Tried
  readonly waitedMs: number
}

/** A request that wants to wait. */
export interface Patient {
  /** Requests are numbered as they arrive. */
  readonly number: number
  readonly since: number
  readonly questions: readonly Question[]
  /** Asks the store for all questions. */
  ask(): Answer[] | Promise<Answer[]>
  /** Looks, without a charge, whether there is room for so many units of a key; undefined if that tells nothing. */
  look(question: Question, units: number): Answer | undefined | Promise<Answer | undefined>
  /** Gives back what was granted after the client had left. */
  giveBack(answers: readonly Answer[]): void
}

export interface Waiter extends Patient {
  readonly queues: Set<WaitQueue>
  state: 'waiting' | 'asking' | 'ended'
  /** Undefined while the store was never asked for it. */
  pause: Pause | undefined
  tried: Tried | undefined
  until: number
  /** Stops its timer. */
  cancel: () => void
  resolve(end: WaitEnd): void
  reject(error: unknown): void
}

/** True if nobody is before it who could go on. */
export function isFirst(waiter: Waiter, now: number): boolean {
  for (const queue of waiter.queues) {
    for (const other of queue.waiters) {
      if (other === waiter) break
      if (holdsUp(other, queue, now)) return false
    }
  }
  return true
}

/**
 * False for one who waits for another key, too, and cannot go on there, while this one may have room: those behind it must
 * not wait for that.
 */
export function holdsUp(waiter: Waiter, queue: WaitQueue, now: number): boolean {
  if (waiter.state === 'asking' || !mayHaveRoom(waiter, queue, now)) return true
  for (const other of waiter.queues) {
    if (other === queue) continue
    if (other.first !== waiter || !mayHaveRoom(waiter, other, now)) return false
  }
  return true
}

/** False while the key is known to refuse the request. */
function mayHaveRoom({ pause }: Waiter, { key, hasRoom, ofSlots }: WaitQueue, now: number): boolean {
  const refusal = pause?.refusals.find(({ question }) => question.key === key)
  if (pause === undefined || refusal === undefined || hasRoom) return true
  return (ofSlots ? pause.pollAt : roomAt(refusal)) <= now
}

/** When it may be admitted; infinite while others are before it. */
export function turnOf(waiter: Waiter, now: number): number {
  if (!isFirst(waiter, now)) return Number.POSITIVE_INFINITY
  const { notBefore = 0, pollAt = 0 } = waiter.pause ?? {}
  let hasRoom = false
  let hasSlot = false
  for (const queue of waiter.queues) {
    if (!queue.hasRoom) continue
    if (queue.ofSlots) hasSlot = true
    else hasRoom = true
  }
  return Math.max(hasRoom ? 0 : notBefore, hasSlot ? 0 : pollAt)
}

/**
 * Those right behind the first of a queue who ask for the same: a store far away is asked for all of them in one call,
 * which admits the first of them.
 */
export function alikeBehind(waiter: Waiter): Waiter[] {
  const { questions, queues } = waiter
  const [question, other] = questions
  if (question === undefined || other !== undefined || question.demand.kind === 'slots') return []
  const [queue] = queues
  const waiters = queue?.waiters.slice(queue.waiters.indexOf(waiter) + 1) ?? []
  const isAlike = ({ questions: [own, more] }: Waiter) =>
    own?.demand === question.demand && more === undefined
  const end = waiters.findIndex(waiter => !isAlike(waiter))
  return waiters.slice(0, end < 0 ? undefined : end).filter(({ state }) => state === 'waiting')
}
