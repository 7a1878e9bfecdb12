/** The clock of live counts: looks for rates, and steps of ten seconds for the last hour. */
import { type LiveTally, LOOKS, STEP_MS, STEPS } from './tally.js'

/** Rates cover at least this time, once counting has lasted that long. */
const RATE_MS = 10_000
/**
 * Hours kept at the same time: 21.6 MB when all are needed; those of 1,000 rules and 1,000 projects are 14.4 MB.
 * Tallies beyond that have rates but no hour.
 */
export const MOST_HOURS = 3000

/** Steps are aligned to the wall clock, so that those of several processes coincide. */
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

  /** The number of the current step, which is not complete. */
  get step(): number {
    return this.#step
  }

  /** The first step with data. */
  get firstStep(): number {
    return Math.max(stepOf(this.since), this.#step - STEPS)
  }

  /** Records all totals at `now` and ends the completed steps. A clock that was set back ends none. */
  look(now: number): void {
    const step = stepOf(now)
    // Steps that ended more than an hour ago are no longer kept.
    this.#step = Math.max(this.#step, step - STEPS)
    while (this.#step < step) {
      this.#endStep(step - this.#step)
      this.#step += 1
    }
    this.#look += 1
    this.#lookedAt[this.#look % LOOKS] = now
    for (const tally of this.#tallies()) tally.look(this.#look)
  }

  /** The look that rates at `now` are measured from, and the seconds since then. */
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
    // Counted each time, because a dropped project takes its hour with it.
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
