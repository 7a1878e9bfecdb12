/** Which of several addresses gets a request, where they have weights, or take turns, or have just come back. */
import type { Balance } from '../../config/words/words.js'

/** An address to choose. */
export interface Weighed {
  /** Requests and WebSockets in progress. */
  readonly load: number
  /** What it gained and spent in earlier turns. */
  credit: number
  /** Its weight at a time in ms: less than the configured one while it starts slowly. */
  weightAt(now: number): number
}

/** Two loads for their weights that differ by less are the same. */
const SAME = 1e-9

/** The address for the next request among `all`, of which there is at least one. */
export function choose<One extends Weighed>(balance: Balance, all: readonly One[], now: number): One {
  return takeTurns(balance === 'round-robin' ? all : leastBusy(all, now), now)
}

/**
 * Those that would have the fewest requests for their weight with one more; all of them where none has any, because then
 * the lightest would never get one.
 */
function leastBusy<One extends Weighed>(all: readonly One[], now: number): readonly One[] {
  if (all.every(({ load }) => load === 0)) return all
  const loads = all.map(one => (one.load + 1) / one.weightAt(now))
  const least = Math.min(...loads)
  return all.filter((_, i) => (loads[i] as number) - least < SAME)
}

/** Each gets its weight in every turn, and the one that is chosen spends what all have got: no one gets two in a row needlessly. */
function takeTurns<One extends Weighed>(among: readonly One[], now: number): One {
  let sum = 0
  let best: One | undefined
  for (const one of among) {
    const weight = one.weightAt(now)
    one.credit += weight
    sum += weight
    if (best === undefined || one.credit > best.credit + SAME) best = one
  }
  ;(best as One).credit -= sum
  return best as One
}

/** The least share of its weight that an address gets while it starts slowly. */
const LEAST_SHARE = 0.1

/** The share of its weight that an address gets which began to start slowly at `since`. */
export function shareAt(now: number, since: number, slowStartMs: number): number {
  return Math.min(1, Math.max(LEAST_SHARE, (now - since) / slowStartMs))
}
