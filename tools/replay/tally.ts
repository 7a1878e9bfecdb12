/** Counts the results of the traffic under one policy, beside those of another policy and of the log. */
import type { Facts, Mode } from '../../gateway/types.js'
import type { Outcome } from '../../gateway/verdict.js'
import { isoTime } from '../log/intake.js'
import type {
  ChangedRequests,
  Offender,
  RecordedDocument,
  ReplayDifference,
  ReplayTally,
} from './document.js'
import type { Judged } from './simulation.js'
import type { Traffic } from './traffic.js'

interface Counts {
  requests: number
  refused: number
}

interface RuleCounts extends Counts {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  readonly projects: Set<string>
  first: Offender | undefined
}

const HOUR_MS = 3_600_000
const FIRST = 5
const TOP_PROJECTS = 20
/** Bounds memory for hostile logs and wrong clocks. */
const MOST_COUNTED = 20_000

export class Tally {
  #requests = 0
  #admitted = 0
  #refused = 0
  #wouldRefuse = 0
  readonly #unserved = new Map<string, number>()
  readonly #rules = new Map<string, RuleCounts>()
  readonly #projects = new Map<string, Counts>()
  readonly #hours = new Map<number, Counts>()
  readonly #offenders: Offender[] = []

  add({ at, facts }: Traffic, judged: Judged): void {
    this.#requests += 1
    if (judged.result === 'unserved' || facts === undefined) {
      const code = judged.result === 'unserved' ? judged.code : 'bad-target'
      this.#unserved.set(code, (this.#unserved.get(code) ?? 0) + 1)
      return
    }
    const { project, verdict } = judged
    const refused = judged.result === 'refused'
    if (refused) this.#refused += 1
    else this.#admitted += 1
    countIn(this.#projects, project.id, refused)
    countIn(this.#hours, Math.floor(at / HOUR_MS) * HOUR_MS, refused)
    const offend = (rules: readonly string[]) => offenderOf(at, project.id, facts, rules)
    for (const outcome of verdict.outcomes) this.#countRule(outcome, project.id, offend)
    let would = false
    for (const outcome of verdict.reportOnly) would = this.#countRule(outcome, project.id, offend) || would
    if (would) this.#wouldRefuse += 1
    if (refused && this.#offenders.length < FIRST) this.#offenders.push(offend(refusersOf(judged)))
  }

  /** True when the rule refused. */
  #countRule(
    { rule: { id, kind, mode }, result }: Outcome,
    project: string,
    offend: (rules: readonly string[]) => Offender,
  ): boolean {
    const name = `${mode} ${id}`
    let counts = this.#rules.get(name)
    if (counts === undefined) {
      counts = { rule: id, kind, mode, requests: 0, refused: 0, projects: new Set(), first: undefined }
      this.#rules.set(name, counts)
    }
    counts.requests += 1
    if (result === 'allowed') return false
    counts.refused += 1
    if (counts.projects.size < MOST_COUNTED) counts.projects.add(project)
    counts.first ??= offend([id])
    return true
  }

  describe(): ReplayTally {
    return {
      requests: this.#requests,
      admitted: this.#admitted,
      refused: this.#refused,
      wouldRefuse: this.#wouldRefuse,
      unserved: Object.fromEntries([...this.#unserved].sort()),
      rules: [...this.#rules.values()]
        .map(({ projects, first, ...counts }) => ({
          ...counts,
          projects: projects.size,
          first: first ?? null,
        }))
        .sort((a, b) => b.refused - a.refused || (a.rule < b.rule ? -1 : 1)),
      projects: [...this.#projects]
        .map(([project, counts]) => ({ project, ...counts }))
        .sort((a, b) => b.refused - a.refused || b.requests - a.requests || (a.project < b.project ? -1 : 1))
        .slice(0, TOP_PROJECTS),
      hours: [...this.#hours]
        .sort(([a], [b]) => a - b)
        .map(([start, counts]) => ({ hour: isoTime(start) as string, ...counts })),
      firstOffenders: this.#offenders,
    }
  }
}

/** The enforced rules that refused a request. */
function refusersOf(judged: Judged): string[] {
  if (judged.result === 'unserved') return []
  return judged.verdict.outcomes.filter(({ result }) => result !== 'allowed').map(({ rule }) => rule.id)
}

/** @param rules the enforced rules, or the one that only reports */
function offenderOf(
  at: number,
  project: string,
  { method, path }: Pick<Facts, 'method' | 'path'>,
  rules: readonly string[],
): Offender {
  return { at: isoTime(at) as string, project, method, path, rules }
}

function countIn<Key>(map: Map<Key, Counts>, key: Key, refused: boolean): void {
  let counts = map.get(key)
  if (counts === undefined) {
    if (map.size >= MOST_COUNTED) return
    counts = { requests: 0, refused: 0 }
    map.set(key, counts)
  }
  counts.requests += 1
  if (refused) counts.refused += 1
}

/** Compares what two policies decide about the same requests. */
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
