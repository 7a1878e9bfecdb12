/** The counters that are closest to their limits, of those seen within the last minute. Looked at only while somebody watches. */
import type { Outcome, Project, Reading } from '../../types.js'

/** Counters seen longer ago are forgotten. */
const SEEN_MS = 60_000
/** Counters that are remembered: far more than are told, since some will fall. */
const MOST = 512

export interface Near {
  readonly outcome: Outcome
  /** That of its windows of which the largest share is used. */
  readonly reading: Reading
  readonly project: string
  /** Used of the quota, at most 1: what report-only rules let pass beyond it must not crowd the others out. */
  readonly share: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

export class Closest {
  readonly #near = new Map<string, Near>()
  /** What a counter must have used at least to be remembered. */
  #least = 0

  /** Takes in what a rule said. */
  see(outcome: Outcome, project: Project | undefined, at: number): void {
    const reading = fullest(outcome.readings)
    if (reading === undefined) return
    const share = shareOf(reading)
    const { key } = outcome
    if (share <= this.#least && !this.#near.has(key)) return
    this.#near.set(key, { outcome, reading, project: project?.id ?? '', share, at })
    if (this.#near.size >= 2 * MOST) this.#cut(at)
  }

  /** The `most` closest at a time, the closest first. */
  top(most: number, now: number): Near[] {
    this.#cut(now)
    return [...this.#near.values()].slice(0, most)
  }

  /** Nobody is watching any more. */
  forget(): void {
    this.#near.clear()
    this.#least = 0
  }

  /** Keeps the closest, in their order. */
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
    if (reading.windowMs === undefined || reading.used === undefined || reading.quota <= 0) continue
    if (best === undefined || shareOf(reading) > shareOf(best)) best = reading
  }
  return best
}

function shareOf({ used = 0, quota }: Reading): number {
  return Math.min(1, used / quota)
}
