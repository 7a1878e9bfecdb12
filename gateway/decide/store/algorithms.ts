/** The window algorithms, by name. */
import type { Algorithm, Window } from '../../types.js'
import type { WindowAlgorithm } from './algorithm.js'
import { calendarWindow } from './calendar-window.js'
import { fixedWindow } from './fixed-window.js'
import { PARTS, slidingWindow } from './sliding-window.js'
import { tokenBucket } from './token-bucket.js'

const ALGORITHMS: Record<Algorithm, WindowAlgorithm> = {
  'sliding-window': slidingWindow,
  'fixed-window': fixedWindow,
  'token-bucket': tokenBucket,
}

export function algorithmOf({ algorithm, calendar }: Window): WindowAlgorithm {
  return calendar === undefined ? ALGORITHMS[algorithm] : calendarWindow
}

/** How long state must be kept after the last token, at most, in milliseconds. */
export function lifetimeMs(windows: readonly Window[]): number {
  let longest = 0
  for (const { ms } of windows) longest = Math.max(longest, ms)
  return longest + Math.ceil(longest / PARTS)
}
