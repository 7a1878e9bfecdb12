/**
 * The counters closest to their limits, of those seen within the last minute. Updated only while a client is watching.
 */
import type { Project } from '../../types.js'
import type { Outcome, Reading } from '../../verdict.js'

/** Counters seen longer ago are dropped. */
const SEEN_MS = 60_000
/** Counters that are kept: far more than are reported, since some will drop out. */
const MOST = 512

export interface Near {
  readonly outcome: Outcome
  /** The reading of the window with the largest used share. */
  readonly reading: Reading
  readonly project: Project | undefined
  /**
   * Used share of the quota, at most 1: counts beyond it, which report-only rules allow, must not crowd out other
   * counters.
   */
  readonly share: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

export class Closest {
  readonly #near = new Map<string, Near>()
  /** A counter that is not kept yet must have a greater share than this. */
  #least = 0

  /** Records the outcome of a rule. */
  see(outcome: Outcome, project: Project | undefined, at: number): void {
    const reading = fullest(outcome.readings)
    if (reading === undefined) return
    const share = shareOf(reading)
    const { key } = outcome
    if (share <= this.#least && !this.#near.has(key)) return
    this.#near.set(key, { outcome, reading, project, share, at })
    if (this.#near.size >= 2 * MOST) this.#cut(at)
  }

  /** The `most` closest counters at `now`, the closest first. */
  top(most: number, now: number): Near[] {
    this.#cut(now)
    return [...this.#near.values()].slice(0, most)
  }

  /** Drops everything, once no client is watching. */
  forget(): void {
    this.#near.clear()
    this.#least = 0
  }

  /** Keeps the closest counters, sorted. */
  #cut(now: number): void {
    const kept = [...this.#near]
      .filter(([, { at }]) => now - at < SEEN_MS)
      .sort(([, one], [, other]) => other.share - one.share || other.at - one.at)
      .slice(0, MOST)
    this.#near.clear()
    for (const [key, near] of kept) this.#near.set(key, near)
    this.#least = kept.length < MOST ? 0 : (kept.at(-1)?.[1].share ?? 0)
  }
}

/** Slots are left out: a rule that admits one request at a time would always be at its limit. */
function fullest(readings: readonly Reading[]): Reading | undefined {
  let best: Reading | undefined
  for (const reading of readings) {
    const isSlots = reading.windowMs === undefined && !reading.lifetime
    if (isSlots || reading.used === undefined || reading.quota <= 0) continue
    if (best === undefined || shareOf(reading) > shareOf(best)) best = reading
  }
  return best
}

function shareOf({ used = 0, quota }: Reading): number {
  return Math.min(1, used / quota)
}
