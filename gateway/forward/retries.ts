/** Whether a request may be sent again: how often, after what, and as a share of all requests. */
import type { RetryReason } from '../../config/words/words.js'

export interface RetrySettings {
  /** Attempts of one request in all. */
  readonly attempts: number
  readonly on: readonly RetryReason[]
  /** In per cent. */
  readonly budget: number
}

/** Receives each retry, or that one was not sent because too many were. */
export type CountRetry = (reason: RetryReason, result: 'sent' | 'over-budget') => void

export class Retries {
  readonly #settings: RetrySettings | undefined
  readonly #budget: RetryBudget
  readonly #count: CountRetry

  /** @param settings without them every retry is allowed for want of a connection, and none else */
  constructor(settings: RetrySettings | undefined, count: CountRetry) {
    this.#settings = settings
    this.#budget = new RetryBudget(settings?.budget ?? 0)
    this.#count = count
  }

  /** True if the configuration says when to retry. */
  get isSet(): boolean {
    return this.#settings !== undefined
  }

  /** A request begins. */
  begin(): void {
    if (this.#settings !== undefined) this.#budget.requested(performance.now())
  }

  /** True if a request that was tried so often may be tried again, apart from the budget. */
  covers(reason: RetryReason, attempts: number): boolean {
    const settings = this.#settings
    if (settings === undefined) return reason === 'connect'
    return attempts < settings.attempts && settings.on.includes(reason)
  }

  /** Takes a retry from the budget; false if there is none left. */
  take(reason: RetryReason): boolean {
    const isAllowed = this.#settings === undefined || this.#budget.take(performance.now())
    this.#count(reason, isAllowed ? 'sent' : 'over-budget')
    return isAllowed
  }
}

const STEP_MS = 1000
/** Ten seconds. */
const STEPS = 10
/** Retries that are allowed in ten seconds however few requests there are. */
const FLOOR = 3

/** Requests and retries of the last ten seconds, in steps of a second. Times are in ms, of any clock. */
export class RetryBudget {
  readonly #percent: number
  readonly #requests = new Float64Array(STEPS)
  readonly #retries = new Float64Array(STEPS)
  #step = 0

  constructor(percent: number) {
    this.#percent = percent
  }

  requested(now: number): void {
    this.#count(this.#requests, now)
  }

  /** Counts a retry, if one more is within the budget. */
  take(now: number): boolean {
    this.#moveTo(Math.floor(now / STEP_MS))
    const allowed = Math.max(FLOOR, (sum(this.#requests) * this.#percent) / 100)
    if (sum(this.#retries) + 1 > allowed) return false
    this.#count(this.#retries, now)
    return true
  }

  #count(counts: Float64Array, now: number): void {
    const step = Math.floor(now / STEP_MS)
    if (step !== this.#step) this.#moveTo(step)
    counts[step % STEPS] = (counts[step % STEPS] ?? 0) + 1
  }

  /** Clears the steps that have begun since the last call. */
  #moveTo(step: number): void {
    for (let next = Math.max(this.#step + 1, step - STEPS + 1); next <= step; next++) {
      this.#requests[next % STEPS] = 0
      this.#retries[next % STEPS] = 0
    }
    this.#step = step
  }
}

function sum(counts: Float64Array): number {
  return counts.reduce((all, count) => all + count, 0)
}
