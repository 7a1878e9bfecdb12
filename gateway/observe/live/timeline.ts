/** The clock of what is counted live: looks for rates, and steps of ten seconds for an hour. */
import { type LiveTally, LOOKS, STEP_MS, STEPS } from './tally.js'

/** Rates are over at least so long, where counting has gone on for it. */
const RATE_MS = 10_000
/**
 * Hours that are kept at the same time: 21.6 MB when all are needed; those of 1,000 rules and 1,000 projects are 14.4 MB.
 * What is beyond has rates and no hour.
 */
export const MOST_HOURS = 3000

/** Steps begin by the wall clock, so that those of several processes are the same. */
export class Timeline {
  /** When counting began, in milliseconds since the epoch. */
  readonly since: number
  readonly #tallies: () => Iterable<LiveTally>
  #step: number
  #look = 0
  readonly #lookedAt = new Float64Array(LOOKS)

  constructor(tallies: () => Iterable<LiveTally>, now: number) {
    this.#tallies = tallies
    this.since = now
    this.#step = stepOf(now)
    this.#lookedAt.fill(now)
  }

  /** The number of the present step, which is not over. */
  get step(): number {
    return this.#step
  }

  /** The first step of which something is known. */
  get firstStep(): number {
    return Math.max(stepOf(this.since), this.#step - STEPS)
  }

  /** Takes note of how all stands at `now`, and ends the steps that are over. A clock that was set back ends none. */
  look(now: number): void {
    const step = stepOf(now)
    // Beyond an hour nothing is left to be forgotten.
    this.#step = Math.max(this.#step, step - STEPS)
    while (this.#step < step) {
      this.#endStep(step - this.#step)
      this.#step += 1
    }
    this.#look += 1
    this.#lookedAt[this.#look % LOOKS] = now
    for (const tally of this.#tallies()) tally.look(this.#look)
  }

  /** The look that rates at `now` are counted from, and the seconds since then. */
  baseline(now: number): { readonly look: number; readonly seconds: number } {
    let look = this.#look
    const oldest = Math.max(0, this.#look - LOOKS + 1)
    while (look > oldest && now - this.#at(look) < RATE_MS) look -= 1
    return { look, seconds: Math.max(1, (now - this.#at(look)) / 1000) }
  }

  #at(look: number): number {
    return this.#lookedAt[look % LOOKS] ?? 0
  }

  #endStep(ending: number): void {
    // Counted anew each time: a project that was let go took its hour with it.
    let hours = 0
    for (const tally of this.#tallies()) if (tally.hasHour) hours += 1
    for (const tally of this.#tallies()) {
      const had = tally.hasHour
      tally.endStep(this.#step, had || hours < MOST_HOURS, ending)
      hours += Number(tally.hasHour) - Number(had)
    }
  }
}

export function stepOf(time: number): number {
  return Math.floor(time / STEP_MS)
}
