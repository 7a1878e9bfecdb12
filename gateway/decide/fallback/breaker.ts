/**
 * A circuit breaker for one Redis: while it is open, Redis is not called, so a dead Redis costs a request
 * nothing.
 */
import type { CallDeadlines } from './call-deadlines.js'

/** Failures in a row that open the breaker, and how often Redis is asked whether it is back. */
const FAILURES_TO_OPEN = 3
const PROBE_EVERY_MS = 250

/** What a call to Redis is for; a ping checks whether it can count. */
export type StoreOp = 'take' | 'peek' | 'lease' | 'ping'

export interface BreakerOptions {
  readonly deadlines: CallDeadlines
  /** Checks that the node of `key` can count; rejects if it cannot. */
  ping(key: string): Promise<void>
  /** Called at the end of each call with the milliseconds it took; a call that takes too long ends at its deadline. */
  onCalled?(ms: number): void
  onFailure(op: StoreOp): void
  /** Called when the breaker opens and when Redis is back. */
  onChange(away: boolean): void
}

/** A call that throws fails like one that rejects. It starts at once, so that calls made together are sent together. */
async function start<T>(call: () => Promise<T>): Promise<T> {
  return call()
}

export class Breaker {
  readonly #options: BreakerOptions
  #failures = 0
  #closed = false
  #doubt: NodeJS.Timeout | undefined
  #probe: NodeJS.Timeout | undefined
  #asking = false

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  get open(): boolean {
    return this.#probe !== undefined
  }

  /**
   * See `Guard.within`.
   *
   * @param feeds whether the call's failure or success counts towards opening the breaker
   */
  within<T>(
    op: StoreOp,
    key: string,
    call: () => Promise<T>,
    late: ((result: T) => void) | undefined,
    feeds: boolean,
  ): Promise<T | undefined> {
    if (this.open) return Promise.resolve(undefined)
    return new Promise(resolve => {
      let waiting = true
      const startedAt = performance.now()
      const end = () => {
        waiting = false
        arrived()
        this.#options.onCalled?.(performance.now() - startedAt)
      }
      const giveUp = () => {
        if (!waiting) return
        end()
        this.#failed(op, key, feeds)
        resolve(undefined)
      }
      const arrived = this.#options.deadlines.start(giveUp)
      start(call).then(result => {
        if (!waiting) {
          late?.(result)
          return
        }
        end()
        if (feeds) this.#failures = 0
        resolve(result)
      }, giveUp)
    })
  }

  /**
   * A connection was closed, or could not be opened: checks the node of `key` until it can count or the breaker opens,
   * so that the node's state is known before a request needs it. The first check waits, so that a new connection can be
   * opened before it.
   */
  suspect(key: string): void {
    if (this.open || this.#closed || this.#doubt !== undefined) return
    const look = async () => {
      const ping = () => this.#options.ping(key).then(() => true)
      const answered = await this.within('ping', key, ping, undefined, true)
      this.#doubt = undefined
      if (!answered) this.suspect(key)
    }
    this.#doubt = setTimeout(look, PROBE_EVERY_MS).unref()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#doubt)
    clearInterval(this.#probe)
  }

  #failed(op: StoreOp, key: string, feeds: boolean): void {
    this.#options.onFailure(op)
    if (!feeds) return
    this.#failures += 1
    if (this.#failures < FAILURES_TO_OPEN || this.open) return
    this.#probe = setInterval(() => this.#ask(key), PROBE_EVERY_MS).unref()
    this.#options.onChange(true)
  }

  async #ask(key: string): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    const sentAt = performance.now()
    const answered = await this.#options.ping(key).then(
      () => true,
      () => false,
    )
    this.#asking = false
    // If Redis answered later than the deadline, the breaker would only open again.
    if (!answered || performance.now() - sentAt > this.#options.deadlines.ms) return
    clearInterval(this.#probe)
    this.#probe = undefined
    this.#failures = 0
    this.#options.onChange(false)
  }
}
