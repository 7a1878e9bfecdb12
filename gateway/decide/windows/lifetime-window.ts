/** The lifetime window: a fixed window that does not end. Credit adds to its quota, and nothing else ever does. */
import type { WindowAlgorithm } from './algorithm.js'
import { fixedWindow } from './fixed-window.js'

/**
 * Its length in ms, which no process sees the end of. A number that scripts and lists of counts can hold: Redis counts in
 * microseconds since the epoch.
 */
export const LIFETIME_MS = 1e12

export const lifetimeWindow: WindowAlgorithm = { ...fixedWindow, resetMs: () => 0 }
