/** Demands as arguments of the Lua scripts, and what the scripts return for several equal requests. */

import type { Demand, MeterDemand } from '../../demand.js'
import type { Algorithm } from '../../types.js'
import { creditKey } from '../credit/credit.js'
import type { Windows as WindowsDemand } from '../leases/lease-client.js'
import { chargeOf } from '../store/meters.js'
import {
  type Ask,
  type Count,
  costOf,
  counted,
  countedWithCredit,
  isLifetimeAt,
  quotasOf,
  takesCredit,
} from '../store/store.js'
import { boundariesAt } from '../windows/calendar.js'

const LETTERS: Record<Algorithm, string> = { 'sliding-window': 's', 'fixed-window': 'f', 'token-bucket': 't' }

/** How a meter is charged. */
const AT_ONCE = 0
const RESERVED = 1
const LATER = 2

/**
 * Name, quota, length in microseconds and algorithm of each window, and the cost if it is more than one. Instead of a
 * length, a calendar window has the starts of three periods and the end of the last; Redis chooses among them by its own
 * clock, so that gateways whose clocks differ agree.
 *
 * @param wall milliseconds since the epoch; called for calendar windows only
 */
export function demandArguments(demand: WindowsDemand, wall: () => number): readonly string[] {
  const { windows, made = {} } = demand
  const last = made.arguments
  if (last !== undefined) {
    if (last.until === Number.POSITIVE_INFINITY) return last.values
    const now = wall()
    if (last.since <= now && now < last.until) return last.values
  }
  let [since, until] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const values = windows.flatMap(({ name, quota, ms, algorithm, calendar, lifetime }) => {
    if (calendar === undefined) return [name, `${quota}`, `${ms * 1000}`, lifetime ? 'l' : LETTERS[algorithm]]
    const boundaries = boundariesAt(calendar, wall())
    since = Math.max(since, boundaries[1])
    until = Math.min(until, boundaries[2])
    return [name, `${quota}`, boundaries.map(ms => ms * 1000).join(' '), 'c']
  })
  const cost = costOf(demand)
  if (cost !== 1) values.push(`${cost}`)
  made.arguments = { values, since, until }
  return values
}

/** The keys of asks for `take`: each counter, followed by the credit that counts for it. */
export function keysOf(asks: readonly Ask[]): string[] {
  return asks.flatMap(({ key, demand }) => (takesCredit(demand) ? [key, creditKey(key)] : key))
}

/** Quota, length and block in microseconds, cost, and how it is charged: `lua/meter.lua`. */
export function meterArguments(demand: MeterDemand, reserves = false): (string | number)[] {
  const { quota, ms, blockMs } = demand
  const how = demand.afterAnswer !== undefined ? LATER : reserves ? RESERVED : AT_ONCE
  return [quota, ms * 1000, blockMs * 1000, costOf(demand), how]
}

/** Kind, how many values follow, and these values. */
export function askArguments(
  { demand, reserves }: Pick<Ask, 'demand' | 'reserves'>,
  wall: () => number,
): (string | number)[] {
  const values = valuesOf(demand, reserves, wall)
  return [KINDS[demand.kind], values.length, ...values]
}

const KINDS: Record<Demand['kind'], string> = { windows: 'w', meter: 'm', slots: 's' }

function valuesOf(
  demand: Demand,
  reserves: boolean | undefined,
  wall: () => number,
): readonly (string | number)[] {
  if (demand.kind === 'windows') return demandArguments(demand, wall)
  if (demand.kind === 'meter') return meterArguments(demand, reserves)
  return [demand.max, demand.ttlMs * 1000]
}

/** What `requests` requests spent; with `andRefused` also the first one that a meter refused. */
export function spentBy(demand: Demand, requests: number, andRefused: boolean): number {
  if (demand.kind !== 'meter') return requests * costOf(demand)
  return requests * chargeOf(demand) + (andRefused ? costOf(demand) : 0)
}

/** The result of one call for one ask, after all admitted requests were charged. */
export interface AskTally {
  readonly admitted: number
  readonly counts: readonly Count[]
}

/** Reads the numbers that `take.lua` returns after the time of the call: for each ask in turn. */
export function talliesOf(asks: readonly Ask[], result: readonly number[]): AskTally[] {
  let next = 1
  return asks.map(({ demand }) => {
    const admitted = result[next] as number
    next += 1
    const counts = quotasOf(demand).map((quota, i) => {
      const at = next
      next += 3
      const [used, violated] = [result[at] as number, result[at + 1] === 1]
      const last = result[at + 2] as number
      return isLifetimeAt(demand, i)
        ? countedWithCredit(quota, last, used, violated)
        : counted(quota, used, violated, last / 1000)
    })
    return { admitted, counts }
  })
}
