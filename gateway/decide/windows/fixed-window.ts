/**
 * The fixed window: begins with the first request and ends as a whole. No window admits more than the quota, so no
 * interval of its length admits more than twice the quota, at the end of one window and the beginning of the next.
 *
 * The list: when the window began (with no tokens), then when the last token was spent, with all tokens. Another
 * algorithm that reads it takes them all as spent at that time, which is the safe side.
 */
import type { Window } from '../../demand.js'
import { lastOf, tokens, type WindowAlgorithm, wholeMicroseconds } from './algorithm.js'

export const fixedWindow: WindowAlgorithm = {
  settle(spent, { ms }, now) {
    // Tokens at the first time and more after it: a list of another algorithm, whose last token begins the window.
    if (spent.length > 2 && spent[1] !== 0) spent.splice(0, Infinity, lastOf(spent) as number, tokens(spent))
    if (spent.length > 0 && (spent[0] as number) + ms <= now) spent.length = 0
  },

  spend(spent, _window, now, cost) {
    const begin = spent[0] ?? now
    const count = tokens(spent) + cost
    spent.length = 0
    if (begin < now) spent.push(begin, 0)
    spent.push(now, count)
  },

  resetMs(spent, { ms }, now) {
    return spent.length === 0 ? 0 : wholeMicroseconds((spent[0] as number) + ms - now)
  },

  giveBack(spent, _window: Window, at, _now, cost) {
    if (spent.length === 0 || (spent[0] as number) > at) return
    const count = tokens(spent) - cost
    if (count <= 0) spent.length = 0
    else spent[spent.length - 1] = count
  },
}
