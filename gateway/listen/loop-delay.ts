/** The delay of the event loop, and whether it is too long to take new requests. */

const PERIOD_MS = 100
/** Looks in a row that must agree, so that one long step, such as a reload or a collection of garbage, sheds nothing. */
const LOOKS = 3

export interface LoopDelaySettings {
  /** A longer delay means overload; it ends below half of this. */
  readonly limitMs: number
  /** Overload has begun or ended. */
  changed?(overloaded: boolean, delayMs: number): void
}

export class LoopDelay {
  readonly #settings: LoopDelaySettings
  #delayMs = 0
  #overloaded = false
  /** Looks in a row that speak against the present state. */
  #against = 0
  #timer: NodeJS.Timeout | undefined

  constructor(settings: LoopDelaySettings) {
    this.#settings = settings
  }

  /** True while new work should be refused. */
  get overloaded(): boolean {
    return this.#overloaded
  }

  /** How late the last look was. */
  get delayMs(): number {
    return this.#delayMs
  }

  /** Looks ten times a second, until `stop`. */
  start(): this {
    let due = performance.now() + PERIOD_MS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.look(Math.max(0, now - due))
      due = now + PERIOD_MS
    }, PERIOD_MS).unref()
    return this
  }

  /** Takes in that a timer ran `delayMs` late. */
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
