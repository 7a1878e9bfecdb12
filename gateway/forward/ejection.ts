/** Consecutive failures after which a backend is ejected. */
const FAILURES = 3
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 30_000

/**
 * Decides whether one of several backends is ejected, from the outcome of real requests. After several consecutive
 * failures it is ejected. Then single requests try it, at growing intervals, and its first response ends the ejection.
 * Times are in ms, of any clock.
 */
export class Ejection {
  /** Consecutive failures. */
  #failures = 0
  /** Interval before the next trial; 0 while the backend is not ejected. */
  #waitMs = 0
  #trialAt = 0

  /** @param known what is known of the same backend so far */
  constructor(known?: Ejection) {
    if (known === undefined) return
    this.#failures = known.#failures
    this.#waitMs = known.#waitMs
    this.#trialAt = known.#trialAt
  }

  get ejected(): boolean {
    return this.#waitMs > 0
  }

  /** The backend has responded; true if that ends its ejection. */
  succeeded(): boolean {
    const isBack = this.ejected
    this.#failures = 0
    this.#waitMs = 0
    return isBack
  }

  /** No connection, or no response; true if the backend is ejected by this failure. */
  failed(now: number): boolean {
    this.#failures += 1
    if (this.ejected || this.#failures < FAILURES) return false
    this.#waitMs = FIRST_WAIT_MS
    this.#trialAt = now + FIRST_WAIT_MS
    return true
  }

  /** True when a single request should try the ejected backend. */
  isTrialDue(now: number): boolean {
    return this.ejected && now >= this.#trialAt
  }

  /** A request tries the backend. Assumes failure: a trial that hangs must neither delay the next nor let more through. */
  startTrial(now: number): void {
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS)
    this.#trialAt = now + this.#waitMs
  }
}
