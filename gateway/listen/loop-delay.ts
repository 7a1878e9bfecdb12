/** Measures the delay of the event loop, and decides when it is too long to accept new requests. */

const PERIOD_MS = 100
/** Consecutive measurements that must agree, so that one long task, such as a reload or a GC, sheds no requests. */
const LOOKS = 3

export interface LoopDelaySettings {
  /** Overload begins above this delay, and ends below half of it. */
  readonly limitMs: number
  /** Overload has begun or ended. */
  changed?(overloaded: boolean, delayMs: number): void
}

export class LoopDelay {
  readonly #settings: LoopDelaySettings
  #delayMs = 0
  #overloaded = false
  /** Consecutive measurements that contradict the current state. */
  #against = 0
  #timer: NodeJS.Timeout | undefined

  constructor(settings: LoopDelaySettings) {
    this.#settings = settings
  }

  /** True while new work should be refused. */
  get overloaded(): boolean {
    return this.#overloaded
  }

  /** The last delay measured. */
  get delayMs(): number {
    return this.#delayMs
  }

  /** Measures ten times a second, until `stop`. */
  start(): this {
    let due = performance.now() + PERIOD_MS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.look(Math.max(0, now - due))
      due = now + PERIOD_MS
    }, PERIOD_MS).unref()
    return this
  }

  /** Records that a timer ran `delayMs` late. */
  look(delayMs: number): void {
    const { limitMs, changed } = this.#settings
    this.#delayMs = delayMs
    const speaksAgainst = this.#overloaded ? delayMs < limitMs / 2 : delayMs > limitMs
    this.#against = speaksAgainst ? this.#against + 1 : 0
    if (this.#against < LOOKS) return
    this.#against = 0
    this.#overloaded = !this.#overloaded
    changed?.(this.#overloaded, delayMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
