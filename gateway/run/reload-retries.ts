/** Tries a refused reload again, with pauses that grow. */

const FIRST_PAUSE_MS = 2000
const LONGEST_PAUSE_MS = 60_000

export class ReloadRetries {
  readonly #attempt: () => void
  #pauseMs = FIRST_PAUSE_MS
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(attempt: () => void) {
    this.#attempt = attempt
  }

  /** Calls `attempt` after a pause, twice as long as the one before. */
  schedule(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(this.#attempt, this.#pauseMs).unref()
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
  }

  /** Nothing is left to try; the next pause is short again. */
  reset(): void {
    clearTimeout(this.#timer)
    this.#pauseMs = FIRST_PAUSE_MS
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }
}
