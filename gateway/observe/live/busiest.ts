/** Requests by project: exact for the projects that matter, and bounded however many names arrive. */
import type { Project } from '../../types.js'
import { allRequests, REQUEST } from './outcomes.js'
import { LiveTally, STEPS } from './tally.js'

/** A project that is counted. */
export interface CountedProject {
  readonly project: Project
  readonly tally: LiveTally
}

/** Projects kept when there are too many: first the most refused, then the busiest. */
const STAY = { refused: 256, all: 768 } as const
/** Largest number of projects counted at the same time. */
const MOST_PROJECTS = 1024

/**
 * Heavy hitters: when there are too many projects, those with the fewest requests and refusals in the last hour are
 * dropped (as in lossy counting, but by number). A dropped project that comes back starts at zero, so reported counts
 * are never too high. A flood of new names costs one sort per few hundred of them.
 */
export class Busiest {
  readonly #counted = new Map<string, CountedProject>()

  /** The tally of a project, for counting one of its requests; created if there is none. */
  tallyOf(project: Project): LiveTally {
    const known = this.#counted.get(project.id)
    if (known !== undefined) return known.tally
    if (this.#counted.size >= MOST_PROJECTS) this.#letGo()
    const tally = new LiveTally()
    const { id, plan, environment, client } = project
    this.#counted.set(id, { project: { id, plan, environment, client }, tally })
    return tally
  }

  /** The tally of the project for which `is` holds, if it is being counted. */
  find(is: (project: Project) => boolean): LiveTally | undefined {
    for (const { project, tally } of this.#counted.values()) if (is(project)) return tally
    return undefined
  }

  *tallies(): Generator<LiveTally> {
    for (const { tally } of this.#counted.values()) yield tally
  }

  /** Drops projects without requests in the last hour. */
  dropSilent(): void {
    for (const [id, { tally }] of this.#counted) if (tally.isSilent) this.#counted.delete(id)
  }

  /**
   * The `most` busiest and the `most` most refused projects, the busiest first. Ranked by the last hour plus the time
   * since `look` extrapolated to an hour.
   */
  top(most: number, look: number): CountedProject[] {
    const expected = (tally: LiveTally, kind: number) =>
      tally.lastHour(kind) + tally.since(look, kind) * STEPS
    const { busy, refused } = this.#sorted(expected)
    const chosen = new Set([...busy.slice(0, most), ...refused.slice(0, most)])
    return busy.filter(one => chosen.has(one))
  }

  #sorted(of: (tally: LiveTally, kind: number) => number) {
    const all = [...this.#counted.values()].map(one => ({
      one,
      requests: allRequests(kind => of(one.tally, kind)),
      refusals: of(one.tally, REQUEST.refused) + of(one.tally, REQUEST.wouldRefuse),
    }))
    const refused = all.filter(({ refusals }) => refusals > 0).sort((a, b) => b.refusals - a.refusals)
    const busy = all.sort((a, b) => b.requests - a.requests)
    return { busy: busy.map(({ one }) => one), refused: refused.map(({ one }) => one) }
  }

  #letGo(): void {
    const { busy, refused } = this.#sorted((tally, kind) => tally.lastHour(kind))
    const first = [...refused.slice(0, STAY.refused), ...busy]
    const stay = new Set<CountedProject>()
    for (const one of first) if (stay.size < STAY.all) stay.add(one)
    for (const [id, one] of this.#counted) if (!stay.has(one)) this.#counted.delete(id)
  }
}
