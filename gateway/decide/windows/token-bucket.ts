/**
 * The token bucket: holds the quota when full and refills evenly, so no interval of the window's length admits more
 * than twice the quota: a full bucket, and what is refilled meanwhile.
 *
 * The list: when it was last updated, and how many tokens were missing then.
 */
import type { Window } from '../../demand.js'
import { CRUMB, lastOf, tokens, type WindowAlgorithm } from './algorithm.js'

export const tokenBucket: WindowAlgorithm = {
  settle(spent, window, now) {
    if (spent.length === 0) return
    // No more tokens can be missing than the bucket holds, even after the quota was lowered.
    const missing = Math.min(tokens(spent), window.quota) - refilled(window, now - (lastOf(spent) as number))
    if (missing < CRUMB) spent.length = 0
    else spent.splice(0, Infinity, now, missing)
  },

  spend(spent, _window, now, cost) {
    spent.splice(0, Infinity, now, tokens(spent) + cost)
  },

  resetMs(spent, { ms, quota }, _now, _used, cost) {
    if (spent.length === 0) return 0
    const missing = tokens(spent)
    const untilWhole = missing - Math.ceil(missing - CRUMB) + 1
    const untilRefilled = missing + cost - quota
    return Math.ceil((Math.max(untilWhole, untilRefilled) * ms * 1000) / quota) / 1000
  },

  /** What was refilled since may have been these very tokens: that part is not given back again. */
  giveBack(spent, window, at, now, cost) {
    const rest = tokens(spent) - Math.max(0, cost - refilled(window, now - at))
    if (rest < CRUMB) spent.length = 0
    else spent.splice(0, Infinity, now, rest)
  },
}

/** Tokens that flow into the bucket within `ms`. */
function refilled(window: Window, ms: number): number {
  return (ms * window.quota) / window.ms
}
