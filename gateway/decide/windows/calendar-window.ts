/**
 * The calendar window: spent tokens count until their day, week or month ends. No period admits more than the quota;
 * around the boundary of two, both quotas may be spent.
 *
 * The list: when the last token was spent, and how many were spent in this period. When the clock was set back since,
 * that period may be a later one than now: they count until it ends, too, but never for longer than a period lasts.
 */
import type { Calendar, Window } from '../../demand.js'
import { lastOf, type Spent, tokens, type WindowAlgorithm, wholeMicroseconds } from './algorithm.js'
import { boundariesAt } from './calendar.js'
import type { WallClock } from './date-clock.js'

export const calendarWindow: WindowAlgorithm = {
  settle(spent, window, now, wallClock) {
    const [begin] = periodAt(window, wallClock(now))
    while (
      spent.length > 0 &&
      (wallClock(spent[0] as number) < begin || (spent[0] as number) + window.ms <= now)
    ) {
      spent.splice(0, 2)
    }
    if (spent.length > 2) spent.splice(0, Infinity, lastOf(spent) as number, tokens(spent))
  },

  spend(spent, _window, now, cost, wallClock) {
    spent.splice(0, Infinity, latest(spent, now, wallClock), tokens(spent) + cost)
  },

  resetMs(spent, window, now, _used, _cost, wallClock) {
    if (spent.length === 0) return 0
    const last = latest(spent, now, wallClock)
    const [, end] = periodAt(window, wallClock(last))
    return wholeMicroseconds(Math.min(end - wallClock(now), last + window.ms - now))
  },

  giveBack(spent, window, at, now, cost, wallClock) {
    const [begin] = periodAt(window, wallClock(now))
    if (spent.length === 0 || wallClock(at) < begin) return
    const count = tokens(spent) - cost
    if (count <= 0) spent.length = 0
    else spent[1] = count
  },
}

/** Of the last token's time and now, the one with the later date. */
function latest(spent: Spent, now: number, wallClock: WallClock): number {
  const last = lastOf(spent)
  return last !== undefined && wallClock(last) > wallClock(now) ? last : now
}

/** Start and end of the period that contains `at`, all since the epoch. */
function periodAt({ calendar }: Window, at: number): [begin: number, end: number] {
  const [, begin, end] = boundariesAt(calendar as Calendar, at)
  return [begin, end]
}
