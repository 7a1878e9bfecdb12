/** What is counted of one thing: so far, over the last ten seconds, and in each ten seconds of the last hour. */

/** Kinds of things that are counted side by side, such as the outcomes of a rule. */
export const KINDS = 5
/** Steps of an hour, each of ten seconds. */
export const STEP_MS = 10_000
export const STEPS = 360
/** Looks that are kept for rates: more than ten seconds of them, at one a second. */
export const LOOKS = 13

/** An hour of one thing: 7,200 bytes. */
class Hour {
  readonly steps = new Uint32Array(STEPS * KINDS)
  readonly sum = new Float64Array(KINDS)
}

/**
 * Has its hour only while it counts something: what is never used costs three short arrays, and what was silent for an hour
 * gives it back.
 */
export class LiveTally {
  /** So far. Whoever counts adds here. */
  readonly counts = new Float64Array(KINDS)
  /** Those at the last few looks, by the number of the look. */
  readonly #looks = new Float64Array(KINDS * LOOKS)
  /** Those at the end of the last step. */
  readonly #before = new Float64Array(KINDS)
  #hour: Hour | undefined
  /** True when it counted something in a step, and got no hour to keep it in. */
  lacksHour = false

  /** Notes how it stands at a look. */
  look(number: number): void {
    this.#looks.set(this.counts, (number % LOOKS) * KINDS)
  }

  /** How many of a kind came since a look. */
  since(number: number, kind: number): number {
    return at(this.counts, kind) - at(this.#looks, (number % LOOKS) * KINDS + kind)
  }

  /** How many of a kind came within the last hour. */
  lastHour(kind: number): number {
    return at(this.#hour?.sum, kind) + at(this.counts, kind) - at(this.#before, kind)
  }

  /** How many of a kind came in a step of the last hour that is over. */
  inStep(step: number, kind: number): number {
    return at(this.#hour?.steps, (step % STEPS) * KINDS + kind)
  }

  get hasHour(): boolean {
    return this.#hour !== undefined
  }

  /** True when nothing came within the last hour. */
  get isSilent(): boolean {
    return this.#hour === undefined && this.counts.every((count, kind) => count === at(this.#before, kind))
  }

  /**
   * Ends a step, in which the step of an hour ago is forgotten. Where `mayKeep` is false, it gets no hour.
   *
   * @param ending steps that end at once, this one among them: after a time without a look each gets its part
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
