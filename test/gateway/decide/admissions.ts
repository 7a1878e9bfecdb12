/** What the algorithms promise for any sequence of requests, checked by arithmetic on the admissions. */
import type { Window } from '../../../gateway/demand.js'

/** Start of the tests' virtual time, in ms. */
export const START = 1_700_000_000_000

/** Admissions as moment and count, in ascending order. */
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

/** The most admissions in one fixed window, which begins with a request. */
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

/** The most that any interval admitted beyond what flowed into the bucket in that time. */
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

/** Whether the algorithm's promise holds for these admissions. */
export function keepsPromise(admissions: Admissions, window: Window, wasTakenBack = false): boolean {
  switch (window.algorithm) {
    case 'sliding-window':
      return most(admissions, window.ms) <= window.quota
    case 'fixed-window':
      // A window stays open when the request that began it is taken back, but its begin can then no longer be seen.
      return wasTakenBack
        ? most(admissions, window.ms) <= 2 * window.quota
        : mostOfOne(admissions, window.ms) <= window.quota
    case 'token-bucket':
      return mostBeyondFlow(admissions, window) <= window.quota + 1e-3
  }
}
