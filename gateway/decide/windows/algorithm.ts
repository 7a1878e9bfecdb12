/**
 * What the window algorithms have in common; `lua/algorithms.lua` does the same in Redis, and both run the same tests.
 * All keep one kind of list, so changing a window's algorithm forgets nothing that was spent.
 */
import type { Window } from '../../demand.js'
import type { WallClock } from './date-clock.js'

/** Spent tokens as time, count, time, count, …; times (ms) never fall, and say when the tokens count as spent. */
export type Spent = number[]

export interface WindowAlgorithm {
  /** Drops what no longer counts at `now`; also reads a list written by another algorithm. */
  settle(spent: Spent, window: Window, now: number, wallClock: WallClock): void
  /** Spends `cost` tokens at `now`, after `settle`. */
  spend(spent: Spent, window: Window, now: number, cost: number, wallClock: WallClock): void
  /**
   * Milliseconds until more quota comes back, after `settle`; 0 when nothing is spent. If no request of that cost fits,
   * until one does, even after the quota was lowered.
   *
   * @param used tokens in `spent`, which the caller already knows
   */
  resetMs(spent: Spent, window: Window, now: number, used: number, cost: number, wallClock: WallClock): number
  /** Takes back what was charged at `at`, after `settle`; this never makes another token count for less. */
  giveBack(spent: Spent, window: Window, at: number, now: number, cost: number, wallClock: WallClock): void
}

/** Milliseconds, rounded to microseconds: a floating-point error must not turn whole seconds into one more. */
export function wholeMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/** Rounding error of a token. */
export const CRUMB = 1e-6

/** Tokens spent, after `settle`. Not whole for a token bucket. */
export function tokens(spent: Spent): number {
  let sum = 0
  for (let i = 1; i < spent.length; i += 2) sum += spent[i] as number
  return sum
}

/** Tokens spent, rounded up. */
export function used(spent: Spent): number {
  return Math.ceil(tokens(spent) - CRUMB)
}

/** The time of the last token; undefined when nothing is spent. */
export function lastOf(spent: Spent): number | undefined {
  return spent.at(-2)
}
