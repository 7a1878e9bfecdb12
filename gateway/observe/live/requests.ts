/** Outcomes of requests, counted live. */
import type { Finished } from '../../types.js'

/** Indexes of a tally of requests. Would-be refusals are also counted under the actual outcome. */
export const REQUEST = { allowed: 0, refused: 1, ourError: 2, upstreamError: 3, wouldRefuse: 4 } as const

const FIRST_ERROR = 500

/** Counts one finished request. */
export function countRequest(counts: Float64Array, kind: number, wouldRefuse: boolean): void {
  counts[kind] = (counts[kind] ?? 0) + 1
  if (wouldRefuse) counts[REQUEST.wouldRefuse] = (counts[REQUEST.wouldRefuse] ?? 0) + 1
}

/** A refusal by a rule is not an error, even if the reason is that nothing could be counted. */
export function kindOf({ verdict, status, source }: Finished): number {
  if (verdict?.allowed === false) return REQUEST.refused
  if (status < FIRST_ERROR) return REQUEST.allowed
  return source === 'gateway' ? REQUEST.ourError : REQUEST.upstreamError
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
