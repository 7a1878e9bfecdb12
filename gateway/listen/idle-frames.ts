/**
 * Limits HTTP/2 frames that cost the client nothing: cancelled requests, pings, settings (CVE-2023-44487 and
 * similar).
 */

import type { Flood } from '../message.js'

/** Frames of one connection per window. */
const MAX_PER_CONNECTION = 200
/** Requests cancelled by one client per window, on all its connections. High, as many users may share an address. */
const MAX_RESETS_PER_CLIENT = 1_000
const WINDOW_MS = 10_000

/** Returns a counter that calls `exhausted` for every frame beyond the limit of a window, with what it was. */
export function allowance(exhausted: (flood: Flood) => void): (flood: Flood) => void {
  let count = 0
  let windowEnds = 0
  return flood => {
    const now = performance.now()
    if (now > windowEnds) {
      windowEnds = now + WINDOW_MS
      count = 0
    }
    count++
    if (count > MAX_PER_CONNECTION) exhausted(flood)
  }
}

/** All clients share one window, so that nothing is kept about clients that have left. */
export class ResetsByClient {
  #counts = new Map<string, number>()
  #windowEnds = 0

  /** Counts a cancelled request; false if `client` has exceeded its limit. */
  spend(client: string): boolean {
    const now = performance.now()
    if (now > this.#windowEnds) {
      this.#windowEnds = now + WINDOW_MS
      this.#counts = new Map()
    }
    const count = (this.#counts.get(client) ?? 0) + 1
    this.#counts.set(client, count)
    return count <= MAX_RESETS_PER_CLIENT
  }
}
