/** What becomes of requests, and the outcomes of each rule, which are added up from the cells of the metrics. */
import { isUpstreamFailure } from '../../errors.js'
import type { Finished } from '../../verdict.js'
import { LiveTally } from './tally.js'

/** Indexes of a tally of requests. Would-be refusals are also counted under the actual outcome. */
export const REQUEST = { allowed: 0, refused: 1, ourError: 2, upstreamError: 3, wouldRefuse: 4 } as const

const FIRST_ERROR = 500

/** Counts one finished request. */
export function countRequest(counts: Float64Array, kind: number, wouldRefuse: boolean): void {
  counts[kind] = (counts[kind] ?? 0) + 1
  if (wouldRefuse) counts[REQUEST.wouldRefuse] = (counts[REQUEST.wouldRefuse] ?? 0) + 1
}

/**
 * A refusal by a rule is not an error, even if the reason is that nothing could be counted. An upstream's error is one
 * that it has sent, or that was sent in its place because it could not be reached or failed.
 */
export function kindOf({ verdict, status, source, error }: Finished): number {
  if (verdict?.allowed === false) return REQUEST.refused
  if (status < FIRST_ERROR) return REQUEST.allowed
  return source === 'upstream' || isUpstreamFailure(error) ? REQUEST.upstreamError : REQUEST.ourError
}

/** True when a report-only rule would have refused the request. */
export function wouldBeRefused({ verdict }: Finished): boolean {
  if (verdict === undefined) return false
  for (const { result } of verdict.reportOnly) if (result === 'limited') return true
  return false
}

/** All requests, where `of` returns the number of each kind. */
export function allRequests(of: (kind: number) => number): number {
  return of(REQUEST.allowed) + of(REQUEST.refused) + of(REQUEST.ourError) + of(REQUEST.upstreamError)
}

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
