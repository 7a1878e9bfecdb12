/**
 * The sliding window: what was spent, and when it stops counting.
 *
 * Two properties, tested in virtual time: no interval of the window's length ever admits more than the quota (P1), and
 * even pacing at 95 % of the quota is never refused while a greedy client gets at least 95 % of it (P2; design section 5).
 *
 * Times are exact while they are few. When they become many, they are rounded up to one of PARTS parts of the window:
 * never down, so P1 holds to the letter, and by at most one part, so P2 holds and the state stays small whatever the quota.
 * `lua/take.lua` says the same in Redis; both run the same test suite.
 */
import type { Window } from '../../types.js'

/** Spent tokens as time, count, time, count, …; times rise, and are when the tokens count as spent (ms). */
export type Spent = number[]

const PARTS = 50
/** More than PARTS, and enough for P2: a quota up to this is never rounded, a larger one gives way for a part. */
const MOST_TIMES = 64

/** Forgets what has left the window that ends at `now`. */
export function forget(spent: Spent, windowMs: number, now: number): void {
  let gone = 0
  while (gone < spent.length && (spent[gone] as number) + windowMs <= now) gone += 2
  if (gone > 0) spent.splice(0, gone)
}

/** Tokens spent within the window, after `forget`. */
export function used(spent: Spent): number {
  let sum = 0
  for (let i = 1; i < spent.length; i += 2) sum += spent[i] as number
  return sum
}

/** Spends one token at `now`. */
export function spend(spent: Spent, windowMs: number, now: number): void {
  const last = spent.length - 2
  // A later time is the careful side, so a token may always join the last one.
  if (last >= 0 && (spent[last] as number) >= now) spent[last + 1] = (spent[last + 1] as number) + 1
  else spent.push(now, 1)
  if (spent.length > 2 * MOST_TIMES) roundUp(spent, windowMs / PARTS)
}

/** Joins the tokens of each part at the part's end. */
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

/**
 * Milliseconds until more quota comes back; 0 when nothing is spent.
 * With the quota used up, that is until one more request fits, also after the quota was lowered.
 */
export function resetMs(spent: Spent, window: Window, now: number): number {
  let excess = Math.max(used(spent) + 1 - window.quota, 1)
  for (let i = 0; i < spent.length; i += 2) {
    excess -= spent[i + 1] as number
    // To the microsecond: a rest of floating point must not make whole seconds one more.
    if (excess <= 0) return Math.round(((spent[i] as number) + window.ms - now) * 1000) / 1000
  }
  return 0
}

/** How long state must be kept after the last token, at most. */
export function lifetimeMs(windows: readonly Window[]): number {
  let longest = 0
  for (const { ms } of windows) longest = Math.max(longest, ms + ms / PARTS)
  return Math.ceil(longest)
}
