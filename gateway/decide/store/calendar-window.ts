/**
 * The calendar window: spent tokens count until their day, week or month ends. No period admits more than the quota;
 * around the boundary of two, both quotas may be spent.
 *
 * The list: when the last token was spent, and how many were spent in this period.
 */
import type { Calendar, Window } from '../../types.js'
import { lastOf, tokens, type WindowAlgorithm } from './algorithm.js'
import { boundariesAt } from './calendar.js'

export const calendarWindow: WindowAlgorithm = {
  settle(spent, window, now, epoch) {
    const [begin] = periodAt(window, now, epoch())
    while (spent.length > 0 && (spent[0] as number) < begin) spent.splice(0, 2)
    if (spent.length > 2) spent.splice(0, Infinity, lastOf(spent) as number, tokens(spent))
  },

  spend(spent, _window, now, cost) {
    spent.splice(0, Infinity, now, tokens(spent) + cost)
  },

  resetMs(spent, window, now, _used, _cost, epoch) {
    if (spent.length === 0) return 0
    const [, end] = periodAt(window, now, epoch())
    return Math.round((end - now) * 1000) / 1000
  },

  giveBack(spent, window, at, now, cost, epoch) {
    const [begin] = periodAt(window, now, epoch())
    if (spent.length === 0 || at < begin) return
    const count = tokens(spent) - cost
    if (count <= 0) spent.length = 0
    else spent[1] = count
  },
}

/** Start and end of the current period, by the clock that `now` is read from. */
function periodAt({ calendar }: Window, now: number, epoch: number): [begin: number, end: number] {
  const [, begin, end] = boundariesAt(calendar as Calendar, now + epoch)
  return [begin - epoch, end - epoch]
}
