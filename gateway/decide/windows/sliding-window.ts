/**
 * The sliding window: what was spent, and when it stops counting.
 *
 * Two properties, tested in virtual time: no interval of the window's length ever admits more than the quota (P1), and
 * even pacing at 95 % of the quota is never refused while a greedy client gets at least 95 % of it (P2).
 *
 * Times are exact while they are few. When they become many, they are rounded up to one of PARTS parts of the window:
 * never down, so P1 holds to the letter, and by at most one part, so P2 holds and the state stays small, however large
 * the quota is.
 */
import { type Spent, type WindowAlgorithm, wholeMicroseconds } from './algorithm.js'

export const PARTS = 50
/** More than PARTS, and enough for P2: quotas up to this are never rounded, larger ones by at most one part. */
const MOST_TIMES = 64

export const slidingWindow: WindowAlgorithm = {
  settle(spent, { ms }, now) {
    let gone = 0
    while (gone < spent.length && (spent[gone] as number) + ms <= now) gone += 2
    if (gone > 0) spent.splice(0, gone)
  },

  spend(spent, { ms }, now, cost) {
    const last = spent.length - 2
    // A later time is the safe side, so a token may always join the last entry.
    if (last >= 0 && (spent[last] as number) >= now) spent[last + 1] = (spent[last + 1] as number) + cost
    else spent.push(now, cost)
    if (spent.length > 2 * MOST_TIMES) roundUp(spent, Math.ceil(ms / PARTS))
  },

  resetMs(spent, { ms, quota }, now, used, cost) {
    let excess = Math.max(used + cost - quota, 1)
    for (let i = 0; i < spent.length; i += 2) {
      excess -= spent[i + 1] as number
      if (excess <= 0) return wholeMicroseconds((spent[i] as number) + ms - now)
    }
    return 0
  },

  /**
   * Takes the first tokens that count as spent at `at` or up to a part later. They may be another request's, but tokens
   * charged at `at` are never before them, so each token that stays is still counted no earlier than it was spent,
   * which is all that P1 needs. If the tokens may have left the window already, none is taken: it would be one of a
   * later request.
   */
  giveBack(spent, { ms }, at, now, cost) {
    if (at + ms <= now) return
    const latest = at + Math.ceil(ms / PARTS)
    let rest = cost
    for (let i = 0; i < spent.length && rest > 0 && (spent[i] as number) <= latest; ) {
      // An entry of less than a token was left by another algorithm.
      const taken = (spent[i] as number) < at ? 0 : Math.min(rest, Math.floor(spent[i + 1] as number))
      rest -= taken
      spent[i + 1] = (spent[i + 1] as number) - taken
      if (spent[i + 1] === 0) spent.splice(i, 2)
      else i += 2
    }
  },
}

/** Merges the tokens of each part into one entry at the part's end. */
function roundUp(spent: Spent, part: number): void {
  let kept = -2
  for (let i = 0; i < spent.length; i += 2) {
    const end = Math.ceil((spent[i] as number) / part) * part
    const count = spent[i + 1] as number
    if (kept >= 0 && spent[kept] === end) {
      spent[kept + 1] = (spent[kept + 1] as number) + count
    } else {
      kept += 2
      spent[kept] = end
      spent[kept + 1] = count
    }
  }
  spent.length = kept + 2
}
