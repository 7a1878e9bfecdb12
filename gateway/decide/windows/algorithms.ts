/** The window algorithms, by name. */

import type { Window } from '../../demand.js'
import type { Algorithm } from '../../types.js'
import type { WindowAlgorithm } from './algorithm.js'
import { calendarWindow } from './calendar-window.js'
import { fixedWindow } from './fixed-window.js'
import { lifetimeWindow } from './lifetime-window.js'
import { PARTS, slidingWindow } from './sliding-window.js'
import { tokenBucket } from './token-bucket.js'

const ALGORITHMS: Record<Algorithm, WindowAlgorithm> = {
  'sliding-window': slidingWindow,
  'fixed-window': fixedWindow,
  'token-bucket': tokenBucket,
}

/** How a window counts. */
export function algorithmOf({ algorithm, calendar, lifetime }: Window): WindowAlgorithm {
  if (lifetime) return lifetimeWindow
  return calendar === undefined ? ALGORITHMS[algorithm] : calendarWindow
}

/** How long a window's state must be kept after its last token, at most, in milliseconds. */
export function lastsMs({ ms }: Pick<Window, 'ms'>): number {
  return ms + Math.ceil(ms / PARTS)
}

/** The same for several windows. */
export function lifetimeMs(windows: readonly Pick<Window, 'ms'>[]): number {
  let longest = 0
  for (const window of windows) longest = Math.max(longest, lastsMs(window))
  return longest
}
