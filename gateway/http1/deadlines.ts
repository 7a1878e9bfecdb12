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
/** Beyond so many it may be noticed later: a look at all of them costs. */
const MANY = 1_000
const TICKS_WHEN_MANY = 5

/** Looks at all it holds every 50 ms, at very many every 250 ms, and only while it holds something. */
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

  /** The time that deadlines are set by. */
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
