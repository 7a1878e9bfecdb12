/** Compares what two policies decide about the same requests, and what one decides with what the log says. */
import type { ChangedRequests, Offender, RecordedDocument, ReplayDifference } from './document.js'
import type { Judged } from './simulation.js'
import { offenderOf, refusersOf } from './tally.js'
import type { Traffic } from './traffic.js'

const FIRST = 5
const TOP_PROJECTS = 20
const MOST_COUNTED = 20_000

export class Differences {
  #bothAdmit = 0
  #bothRefuse = 0
  readonly #refused = new Changes()
  readonly #admitted = new Changes()

  /** Compares the results for one request; one that is not served counts as not refused. */
  add(traffic: Traffic, candidate: Judged, other: Judged): void {
    const now = candidate.result === 'refused'
    const then = other.result === 'refused'
    if (now && then) this.#bothRefuse += 1
    else if (now) this.#refused.add(traffic, candidate)
    else if (then) this.#admitted.add(traffic, other)
    else this.#bothAdmit += 1
  }

  describe(): ReplayDifference {
    return {
      bothAdmit: this.#bothAdmit,
      bothRefuse: this.#bothRefuse,
      newlyRefused: this.#refused.describe(),
      newlyAdmitted: this.#admitted.describe(),
    }
  }
}

class Changes {
  #requests = 0
  readonly #rules = new Map<string, number>()
  readonly #projects = new Map<string, number>()
  readonly #first: Offender[] = []

  add({ at, facts }: Traffic, refusing: Judged): void {
    this.#requests += 1
    if (refusing.result === 'unserved' || facts === undefined) return
    const rules = refusersOf(refusing)
    for (const rule of rules) increment(this.#rules, rule)
    increment(this.#projects, refusing.project.id)
    if (this.#first.length < FIRST) this.#first.push(offenderOf(at, refusing.project.id, facts, rules))
  }

  describe(): ChangedRequests {
    return {
      requests: this.#requests,
      rules: largest(this.#rules, MOST_COUNTED),
      projects: largest(this.#projects, TOP_PROJECTS),
      first: this.#first,
    }
  }
}

function increment(counts: Map<string, number>, name: string): void {
  const present = counts.get(name)
  if (present !== undefined || counts.size < MOST_COUNTED) counts.set(name, (present ?? 0) + 1)
}

function largest(counts: ReadonlyMap<string, number>, most: number): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, most))
}

/** Counts how often the candidate decides as the log says, which shows how reliable a replay is. */
export class Recorded {
  readonly #counts = { requests: 0, bothAdmit: 0, bothRefuse: 0, onlyThen: 0, onlyNow: 0 }

  add({ wasRefused }: Traffic, { result }: Judged): void {
    if (wasRefused === undefined) return
    const now = result === 'refused'
    this.#counts.requests += 1
    this.#counts[wasRefused ? (now ? 'bothRefuse' : 'onlyThen') : now ? 'onlyNow' : 'bothAdmit'] += 1
  }

  /** Null when the log does not say of any request whether it was refused. */
  describe(): RecordedDocument | null {
    return this.#counts.requests === 0 ? null : { ...this.#counts }
  }
}
