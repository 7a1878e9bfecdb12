import { PATIENCE_MS, QUIET_MS } from './limits.js'

/** Whether the peer of a connection is still there: one that is gone without a trace does not say so. */
export class Liveness {
  /** Something has come since the last look. */
  #hasSent = false
  #seenAt: number
  /** The peer was asked for a sign of life since it was last seen. */
  #isAsked = false

  /** Times are in ms of `performance.now()`. */
  constructor(now: number) {
    this.#seenAt = now
  }

  /** Something has come. */
  onSeen(): void {
    this.#hasSent = true
  }

  /** What to do now, at a look every second or so while requests are in progress. */
  look(now: number): 'wait' | 'ask' | 'give-up' {
    if (this.#hasSent) {
      this.#hasSent = false
      this.#isAsked = false
      this.#seenAt = now
    }
    const quietMs = now - this.#seenAt
    if (this.#isAsked) return quietMs >= QUIET_MS + PATIENCE_MS ? 'give-up' : 'wait'
    return quietMs >= QUIET_MS ? 'ask' : 'wait'
  }

  /** The peer is asked for a sign of life. */
  onAsked(): void {
    this.#isAsked = true
  }
}
