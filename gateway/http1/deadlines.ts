/** One clock hand for every wait of a room: nobody needs a timer of its own for each request. */

/** Something that must not wait beyond a point in time. */
export interface Timed {
  /** In milliseconds of `performance.now()`; Infinity for none. */
  deadline: number
  /** The deadline has passed. It is Infinity again by then, so this comes once for each that was set. */
  onDeadline(): void
}

/** How late a deadline may be noticed. */
const TICK_MS = 50

/** Looks at all it holds every 50 ms, and only while it holds something. */
export class Deadlines {
  readonly #all = new Set<Timed>()
  #tick: NodeJS.Timeout | undefined

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

  /** The time that deadlines are set by. */
  now(): number {
    return performance.now()
  }

  #look(): void {
    const now = performance.now()
    for (const one of this.#all) {
      if (one.deadline > now) continue
      one.deadline = Number.POSITIVE_INFINITY
      one.onDeadline()
    }
  }
}
