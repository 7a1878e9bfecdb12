/** Failures in a row after which a backend is left out. */
const FAILURES = 3
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 30_000

/**
 * Whether one of several backends is left out, judged by the requests it is sent. After some failures in a row it is
 * ejected; from time to time one request tries it, the longer apart the longer it stays silent, and the first answer
 * brings it back. Times are ms of any one clock.
 */
export class Ejection {
  /** In a row. */
  #failures = 0
  /** Until the next trial; 0 while it is not ejected. */
  #waitMs = 0
  #trialAt = 0

  get ejected(): boolean {
    return this.#waitMs > 0
  }

  /** It has answered; true when that brings it back. */
  succeeded(): boolean {
    const isBack = this.ejected
    this.#failures = 0
    this.#waitMs = 0
    return isBack
  }

  /** No connection, or no answer; true when it is now ejected. */
  failed(now: number): boolean {
    this.#failures += 1
    if (this.ejected || this.#failures < FAILURES) return false
    this.#waitMs = FIRST_WAIT_MS
    this.#trialAt = now + FIRST_WAIT_MS
    return true
  }

  /** True for the one request that may try an ejected backend now. */
  tries(now: number): boolean {
    if (!this.ejected || now < this.#trialAt) return false
    // Counts as a failure for now: a trial that hangs must neither delay the next one nor attract others.
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS)
    this.#trialAt = now + this.#waitMs
    return true
  }
}
