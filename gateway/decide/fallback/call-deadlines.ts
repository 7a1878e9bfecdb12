/** Deadlines of equal length that share one timer: a timer for each call would be too expensive. */

interface Wait {
  readonly until: number
  /** Undefined once the call has ended. */
  onLate: (() => void) | undefined
}

export class CallDeadlines {
  readonly ms: number
  /** In the order of their deadlines. */
  #waits: Wait[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number) {
    this.ms = ms
  }

  /** Calls `onLate` after the deadline, unless the function it returns has been called. */
  start(onLate: () => void): () => void {
    const wait: Wait = { until: performance.now() + this.ms, onLate }
    this.#waits.push(wait)
    this.#timer ??= setTimeout(() => this.#tick(), this.ms)
    return () => {
      wait.onLate = undefined
    }
  }

  #tick(): void {
    const now = performance.now()
    const isPending = ({ onLate, until }: Wait) => onLate !== undefined && until > now
    const first = this.#waits.findIndex(isPending)
    const due = this.#waits.splice(0, first < 0 ? this.#waits.length : first)
    const next = this.#waits[0]
    this.#timer = next && setTimeout(() => this.#tick(), next.until - now)
    // The deadline measures Redis, not our own event loop: replies that have already arrived are read before giving
    // up.
    setImmediate(() => {
      for (const { onLate } of due) onLate?.()
    })
  }
}
