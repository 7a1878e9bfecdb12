/** What a request reserves whose cost only its response tells (docs/policies.md, 'Reserve and settle'). */
import { type CountedBucket, PROJECT_LIMITS } from '../../../config/words/bucket.js'
import { mostReserved, type ReservedCost } from '../../../config/words/reserve.js'
import type { Facts, Matched, Rule } from '../../types.js'
import { bodyKind } from '../body-kind.js'
import { jsonIn } from '../json-body.js'
import { membersOf, valuesOf } from '../json-text.js'
import { settlesByBody } from './settle.js'

/** The beginning of a request's body, as far as rules may read it. */
export interface BodyStart {
  readonly bodyPrefix?: Buffer | undefined
  /** True if the rest had not arrived in time. */
  readonly isBodyLate?: boolean | undefined
}

/** How the cost of a request is reserved and settled; undefined if it is known beforehand. */
export function reservedCostOf({ rule, route }: Matched): ReservedCost | undefined {
  if (rule.kind !== PROJECT_LIMITS) return undefined
  return (rule.config as CountedBucket).reserved?.[route]
}

/** True if requests of the rule may give tokens back, so that a refusal may end before its time. */
export function isRefundable({ kind, config }: Rule): boolean {
  return kind === PROJECT_LIMITS && (config as CountedBucket).reserved !== undefined
}

/** True if the body of the response has to be watched for one of these rules. */
export function watchesAnswer(matched: readonly Matched[]): boolean {
  return matched.some(one => {
    const cost = reservedCostOf(one)
    return cost !== undefined && settlesByBody(cost)
  })
}

/** True if what the request reserves may be in its body. */
export function reservesByBody(matched: Matched, facts: Facts): boolean {
  return reservedCostOf(matched)?.reserve.jsonBody !== undefined && bodyKind(facts) !== undefined
}

/**
 * What a request reserves. Numbers that are no whole number from 1 are not taken, and of repeated members the largest
 * is. A body that upstreams may read in another way than the gateway reserves the most.
 */
export function reserveOf(
  cost: ReservedCost,
  facts: Facts,
  { bodyPrefix, isBodyLate = false }: BodyStart,
): number {
  const { default: usual, jsonBody } = cost.reserve
  if (jsonBody === undefined || bodyPrefix === undefined || bodyPrefix.length === 0) return usual
  const json = jsonIn(facts, bodyPrefix, isBodyLate)
  if (json === undefined) return mostReserved(cost)
  const largest = largestAt(json, jsonBody.split('.'))
  return largest === undefined ? usual : Math.min(mostReserved(cost), largest)
}

/** The largest whole number from 1 at the path, among repeated members. */
function largestAt(json: string, [name = '', ...rest]: readonly string[]): number | undefined {
  if (!json.startsWith('{')) return undefined
  let largest: number | undefined
  for (const value of valuesOf(membersOf(json), name)) {
    const found = rest.length === 0 ? wholeNumber(value) : largestAt(value, rest)
    if (found !== undefined) largest = Math.max(largest ?? 0, found)
  }
  return largest
}

/** A value as written in JSON: texts, lists and words are no numbers. */
function wholeNumber(json: string): number | undefined {
  const value = json.startsWith('"') ? Number.NaN : Number(json)
  return Number.isInteger(value) && value >= 1 ? value : undefined
}
