/** What a request reserves whose cost only its response tells (docs/policies.md, 'Reserve and settle'). */
import { type CountedBucket, PROJECT_LIMITS } from '../../../config/words/bucket.js'
import { mostReserved, type ReservedCost } from '../../../config/words/reserve.js'
import type { Facts, Matched, Rule } from '../../types.js'
import { bodyKind, isUnreadable, PEEK_BYTES } from '../body-kind.js'
import { isDeeperThan, membersOf } from '../json-text.js'
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
export function reserveOf(cost: ReservedCost, facts: Facts, { bodyPrefix, isBodyLate }: BodyStart): number {
  const { default: usual, jsonBody } = cost.reserve
  if (jsonBody === undefined || bodyPrefix === undefined || bodyPrefix.length === 0) return usual
  const most = mostReserved(cost)
  if (isBodyLate || bodyPrefix.length >= PEEK_BYTES || isUnreadable(facts, bodyPrefix)) return most
  const text = bodyPrefix.toString('utf8').replace(/^\uFEFF/, '')
  if (isDeeperThan(text, DEEPEST)) return most
  try {
    JSON.parse(text)
  } catch {
    return most
  }
  const largest = largestAt(text.trim(), jsonBody.split('.'))
  return largest === undefined ? usual : Math.min(most, largest)
}

const DEEPEST = 100

/** The largest whole number from 1 at the path, among repeated members; upstreams may ignore the case of names. */
function largestAt(json: string, [name = '', ...rest]: readonly string[]): number | undefined {
  if (!json.startsWith('{')) return undefined
  let largest: number | undefined
  for (const member of membersOf(json)) {
    if (member.name.toLowerCase() !== name.toLowerCase()) continue
    const value = rest.length === 0 ? wholeNumber(member.value) : largestAt(member.value, rest)
    if (value !== undefined) largest = Math.max(largest ?? 0, value)
  }
  return largest
}

function wholeNumber(json: string): number | undefined {
  const value = Number(json)
  // Beyond what is exact, it is more than any quota.
  return json !== '' && !json.startsWith('"') && Number.isInteger(value) && value >= 1 ? value : undefined
}
