/** Demands as the scripts take them. */
import type { Algorithm, Demand, MeterDemand, Window } from '../../types.js'
import { costOf } from './meters.js'
import type { Ask } from './store.js'

const LETTERS: Record<Algorithm, string> = { 'sliding-window': 's', 'fixed-window': 'f', 'token-bucket': 't' }

/** How a meter is charged. */
const AT_ONCE = 0
const RESERVED = 1
const LATER = 2

/** A rule's windows are one object while its numbers stand, and are sent with every request. */
const known = new WeakMap<readonly Window[], readonly string[]>()

/** Quota, length in microseconds and algorithm of each. */
export function windowArguments(windows: readonly Window[]): readonly string[] {
  let values = known.get(windows)
  if (values === undefined) {
    values = windows.flatMap(({ quota, ms, algorithm }) => [`${quota}`, `${ms * 1000}`, LETTERS[algorithm]])
    known.set(windows, values)
  }
  return values
}

/** Quota, length and block in microseconds, cost, and how it is charged: `lua/meter.lua`. */
export function meterArguments(demand: MeterDemand, reserves = false): (string | number)[] {
  const { quota, ms, blockMs } = demand
  const how = demand.afterAnswer !== undefined ? LATER : reserves ? RESERVED : AT_ONCE
  return [quota, ms * 1000, blockMs * 1000, costOf(demand), how]
}

/** Kind, how many values follow, and these values. */
export function askArguments({ demand, reserves }: Pick<Ask, 'demand' | 'reserves'>): (string | number)[] {
  const values = valuesOf(demand, reserves)
  return [KINDS[demand.kind], values.length, ...values]
}

const KINDS: Record<Demand['kind'], string> = { windows: 'w', meter: 'm', slots: 's' }

function valuesOf(demand: Demand, reserves: boolean | undefined): readonly (string | number)[] {
  if (demand.kind === 'windows') return windowArguments(demand.windows)
  if (demand.kind === 'meter') return meterArguments(demand, reserves)
  return [demand.max, demand.ttlMs * 1000]
}
