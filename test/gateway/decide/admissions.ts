/** What the algorithms promise of any course of events, as arithmetic on the admissions that were seen. */
import type { Window } from '../../../gateway/types.js'

/** When the virtual time of tests begins, in ms. */
export const START = 1_700_000_000_000

/** Admissions as moment and count; moments rise. */
export type Admissions = [moment: number, count: number][]

/** The most admissions that any interval of the window's length holds. */
export function most(admissions: Admissions, ms: number): number {
  let first = 0
  let held = 0
  let highest = 0
  for (const [moment, count] of admissions) {
    held += count
    for (let [oldest, gone] = admissions[first] as [number, number]; oldest + ms <= moment; ) {
      held -= gone
      first += 1
      ;[oldest, gone] = admissions[first] as [number, number]
    }
    highest = Math.max(highest, held)
  }
  return highest
}

/** The most admissions of a window that begins with a request and ends whole. */
function mostOfOne(admissions: Admissions, ms: number): number {
  let begin = Number.NEGATIVE_INFINITY
  let held = 0
  let highest = 0
  for (const [moment, count] of admissions) {
    if (count === 0) continue
    if (begin + ms <= moment) {
      begin = moment
      held = 0
    }
    held += count
    highest = Math.max(highest, held)
  }
  return highest
}

/** The most that any interval admitted beyond what flows into the bucket meanwhile. */
function mostBeyondFlow(admissions: Admissions, { quota, ms }: Window): number {
  let taken = 0
  let lowest = Number.POSITIVE_INFINITY
  let highest = 0
  for (const [moment, count] of admissions) {
    const flowed = ((moment - START) * quota) / ms
    lowest = Math.min(lowest, taken - flowed)
    taken += count
    highest = Math.max(highest, taken - flowed - lowest)
  }
  return highest
}

/** What each algorithm promises of any course of events. */
export function keepsPromise(admissions: Admissions, window: Window, wasTakenBack = false): boolean {
  switch (window.algorithm) {
    case 'sliding-window':
      return most(admissions, window.ms) <= window.quota
    case 'fixed-window':
      // A window goes on when the request that began it is taken back, but nobody sees then when it began.
      return wasTakenBack
        ? most(admissions, window.ms) <= 2 * window.quota
        : mostOfOne(admissions, window.ms) <= window.quota
    case 'token-bucket':
      return mostBeyondFlow(admissions, window) <= window.quota + 1e-3
  }
}
