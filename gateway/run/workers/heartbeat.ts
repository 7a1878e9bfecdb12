/** Whether a process still answers. */

/** Questions in the time that it may be silent. */
const BEATS = 10

export interface HeartbeatOptions {
  /** Resolves when it has answered. */
  ask(): Promise<unknown>
  readonly timeoutMs: number
  /** It has not answered for that long. */
  silent(): void
}

/**
 * Asks, and asks again once it is answered. It counts its own beats rather than the time: while this process stood still, or
 * the whole machine, nobody else was late.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #isAsked = false
  #missed = 0

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** False while a question stands unanswered since the last beat. */
  get answers(): boolean {
    return this.#missed === 0
  }

  start(): void {
    this.#timer = setInterval(() => this.#beat(), this.#options.timeoutMs / BEATS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #beat(): void {
    if (!this.#isAsked) {
      this.#isAsked = true
      this.#options.ask().then(
        () => this.#heard(),
        () => this.stop(),
      )
      return
    }
    this.#missed += 1
    if (this.#missed === BEATS) this.#options.silent()
  }

  #heard(): void {
    this.#isAsked = false
    this.#missed = 0
  }
}
