/**
 * The counts of one thing: in total, over the last ten seconds, and in each ten seconds of the last hour; and their clock.
 */

/** Number of kinds that are counted side by side, such as the outcomes of a rule. */
export const KINDS = 5
/** An hour is kept in steps of ten seconds. */
export const STEP_MS = 10_000
export const STEPS = 360
/** Looks kept for rates: more than ten seconds' worth, at one look a second. */
const LOOKS = 13

/** The last hour of one thing: 7,200 bytes. */
class Hour {
  readonly steps = new Uint32Array(STEPS * KINDS)
  readonly sum = new Float64Array(KINDS)
}

/**
 * Holds an `Hour` only while it counts something: an unused tally costs three short arrays, and one that was silent for
 * an hour releases its `Hour`.
 */
export class LiveTally {
  /** Totals so far. Callers add to these. */
  readonly counts = new Float64Array(KINDS)
  /** The totals at the last few looks, by the number of the look. */
  readonly #looks = new Float64Array(KINDS * LOOKS)
  /** The totals at the end of the last step. */
  readonly #before = new Float64Array(KINDS)
  #hour: Hour | undefined
  /** True when something was counted in a step but no `Hour` was available to keep it. */
  lacksHour = false

  /** Records the totals at a look. */
  look(number: number): void {
    this.#looks.set(this.counts, (number % LOOKS) * KINDS)
  }

  /** How many of a kind were counted since a look. */
  since(number: number, kind: number): number {
    return at(this.counts, kind) - at(this.#looks, (number % LOOKS) * KINDS + kind)
  }

  /** How many of a kind were counted within the last hour. */
  lastHour(kind: number): number {
    return at(this.#hour?.sum, kind) + at(this.counts, kind) - at(this.#before, kind)
  }

  /** How many of a kind were counted in a completed step of the last hour. */
  inStep(step: number, kind: number): number {
    return at(this.#hour?.steps, (step % STEPS) * KINDS + kind)
  }

  get hasHour(): boolean {
    return this.#hour !== undefined
  }

  /** True when nothing was counted within the last hour. */
  get isSilent(): boolean {
    return this.#hour === undefined && this.counts.every((count, kind) => count === at(this.#before, kind))
  }

  /**
   * Ends a step and drops the one of an hour ago. Where `mayKeep` is false, no `Hour` is created.
   *
   * @param ending steps that end at once, this one included: after a time without looks, the counts are spread over
   * them
   */
  endStep(step: number, mayKeep: boolean, ending: number): void {
    if (this.#hour === undefined && (!mayKeep || this.isSilent)) {
      this.lacksHour ||= !this.isSilent
      this.#before.set(this.counts)
      return
    }
    this.lacksHour = false
    this.#hour ??= new Hour()
    const { steps, sum } = this.#hour
    let left = 0
    for (let kind = 0; kind < KINDS; kind += 1) {
      const place = (step % STEPS) * KINDS + kind
      const came = Math.ceil((at(this.counts, kind) - at(this.#before, kind)) / ending)
      sum[kind] = at(sum, kind) + came - at(steps, place)
      steps[place] = came
      this.#before[kind] = at(this.#before, kind) + came
      left += at(sum, kind)
    }
    if (left === 0) this.#hour = undefined
  }
}

function at(list: Float64Array | Uint32Array | undefined, index: number): number {
  return list?.[index] ?? 0
}

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

function stepOf(time: number): number {
  return Math.floor(time / STEP_MS)
}
