/** What a call of the script for several equal requests counted, and the part of one of them in it. */
import type { Demand } from '../../types.js'
import { chargeOf } from '../store/meters.js'
import { type Ask, costOf, quotasOf } from '../store/store.js'

/** What `requests` requests spent; with `andRefused` also the first one that a meter refused. */
export function spentBy(demand: Demand, requests: number, andRefused: boolean): number {
  if (demand.kind !== 'meter') return requests * costOf(demand)
  return requests * chargeOf(demand) + (andRefused ? costOf(demand) : 0)
}

/** The result of one call for one ask, after all admitted requests were charged. */
export interface AskTally {
  readonly admitted: number
  readonly counts: readonly { quota: number; used: number; violated: boolean; resetMs: number }[]
}

/** Reads the numbers that `take.lua` returns after the time of the call: for each ask in turn. */
export function talliesOf(asks: readonly Ask[], result: readonly number[]): AskTally[] {
  let next = 1
  return asks.map(({ demand }) => {
    const admitted = result[next] as number
    next += 1
    const counts = quotasOf(demand).map(quota => {
      const at = next
      next += 3
      const resetMs = (result[at + 2] as number) / 1000
      return { quota, used: result[at] as number, violated: result[at + 1] === 1, resetMs }
    })
    return { admitted, counts }
  })
}
