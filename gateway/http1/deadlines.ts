/** One shared timer for many deadlines, instead of a timer for each request. */

/** Something with a deadline. */
export interface Timed {
  /** In ms of `performance.now()`; Infinity for none. */
  deadline: number
  /** The deadline has passed. It is reset to Infinity first, so each deadline is reported once. */
  onDeadline(): void
}

/** How often deadlines are checked, and so how late one may be noticed. */
const TICK_MS = 50
/** Above this number of entries they are checked less often, since a check visits all of them. */
const MANY = 1_000
const TICKS_WHEN_MANY = 5

/** Checks all entries every 50 ms, or every 250 ms when there are very many; no timer runs without entries. */
export class Deadlines {
  readonly #all = new Set<Timed>()
  #tick: NodeJS.Timeout | undefined
  #ticks = 0

  add(one: Timed): void {
    this.#all.add(one)
    this.#tick ??= setInterval(() => this.#look(), TICK_MS).unref()
  }

  delete(one: Timed): void {
    this.#all.delete(one)
    if (this.#all.size > 0) return
    clearInterval(this.#tick)
    this.#tick = undefined
  }

  /** The clock of the deadlines. */
  now(): number {
    return performance.now()
  }

  #look(): void {
    this.#ticks += 1
    if (this.#all.size > MANY && this.#ticks % TICKS_WHEN_MANY !== 0) return
    const now = performance.now()
    for (const one of this.#all) {
      if (one.deadline > now) continue
      one.deadline = Number.POSITIVE_INFINITY
      one.onDeadline()
    }
  }
}
