/** Checks whether a process still answers. */

/** Beats within the timeout. */
const BEATS = 10

export interface HeartbeatOptions {
  /** Asks the process; resolves when it has answered. */
  ask(): Promise<unknown>
  readonly timeoutMs: number
  /** Called when it has not answered for that long. */
  silent(): void
}

/**
 * Asks again after each answer. Counts its own beats rather than time: while this process or the whole machine was
 * suspended, the other process was not late.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #isAsked = false
  #missed = 0

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** False once a beat has passed without an answer. */
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
        () => this.#onBeat(),
        () => this.stop(),
      )
      return
    }
    this.#missed += 1
    if (this.#missed === BEATS) this.#options.silent()
  }

  #onBeat(): void {
    this.#isAsked = false
    this.#missed = 0
  }
}
