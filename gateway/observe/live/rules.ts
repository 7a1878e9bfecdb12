/** The outcomes of each rule, added up from the cells of the metrics, which count them anyway. */
import { LiveTally } from './tally.js'

/** The outcomes, in the order of their indexes in a rule's tally. */
export const OUTCOMES = ['allowed', 'near', 'limited', 'would_limit', 'error'] as const

type Cells = Iterable<readonly [Readonly<Record<string, string>>, number]>

export class RuleTallies implements Iterable<[string, LiveTally]> {
  readonly #cells: Cells
  readonly #byRule = new Map<string, LiveTally>()

  constructor(cells: Cells) {
    this.#cells = cells
  }

  /** Brings the counts up to date. */
  read(): void {
    for (const tally of this.#byRule.values()) tally.counts.fill(0)
    for (const [{ rule = '', outcome = '' }, count] of this.#cells) {
      const { counts } = this.#tallyOf(rule)
      const place = OUTCOMES.indexOf(reportedAs(outcome))
      counts[place] = (counts[place] ?? 0) + count
    }
  }

  find(rule: string): LiveTally | undefined {
    return this.#byRule.get(rule)
  }

  [Symbol.iterator](): Iterator<[string, LiveTally]> {
    return this.#byRule.entries()
  }

  #tallyOf(rule: string): LiveTally {
    let tally = this.#byRule.get(rule)
    if (tally === undefined) {
      tally = new LiveTally()
      this.#byRule.set(rule, tally)
    }
    return tally
  }
}

/** A refusal is one even if the reason is that nothing could be counted. */
function reportedAs(outcome: string) {
  return outcome === 'unavailable' ? 'limited' : (outcome as (typeof OUTCOMES)[number])
}
