/** What a log says of one rule in one mode. */
import type { Decision } from '../../gateway/observe/record.js'
import type { Mode } from '../../gateway/types.js'
import { Distinct } from '../log/distinct.js'

export interface Hour {
  /** Requests the rule was asked about; an estimate where only a share is logged. */
  seen: number
  refused: number
  wouldRefuse: number
}

/** The most that was asked for of one window's or slot's quota, as counters told it. */
export interface Peak {
  readonly policy: string
  readonly quota: number
  attempted: number
  readonly windowMs: number | null
  /** Quotas seen before the last one. */
  readonly formerQuotas: Set<number>
}

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Bounds memory when clocks are wrong: two years of hours. */
const MOST_HOURS = 20_000
/** Projects counted one by one; a policy knows its projects, so this is far beyond them. */
const MOST_PROJECTS = 10_000

export class RuleTally {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  src: string | null = null
  /** Its requests cost what their answers say, which records do not contain. */
  countsAnswers = false
  /** Per cent of its keys for which the rule is in force, as last seen; undefined where it is for all, or for none. */
  enforcedFor: number | undefined
  /** Where the admin port had set this mode when the rule was last seen in it; undefined where the files had. */
  modeSrc: string | undefined
  seen = 0
  refused = 0
  wouldRefuse = 0
  passedUncounted = 0
  refusedUncounted = 0
  from = Number.POSITIVE_INFINITY
  to = Number.NEGATIVE_INFINITY
  readonly keys = new Distinct()
  readonly projects = new Distinct()
  readonly byProject = new Map<string, number>()
  readonly hours = new Map<number, Hour>()
  readonly peaks = new Map<string, Peak>()
  readonly #days = new Set<number>()
  /** The quota of each project as last seen. */
  readonly #quotas = new Map<string, number>()

  constructor(rule: string, kind: string, mode: Mode) {
    this.rule = rule
    this.kind = kind
    this.mode = mode
  }

  /** The rule was asked about a request that represents `weight` requests. */
  asked(at: number, weight: number): void {
    this.#observed(at)
    this.seen += weight
    this.#count(at, 'seen', weight)
  }

  /** A record of its own decision that let nobody pass, or nobody count. */
  decided(decision: Decision, at: number, key: string | null, project: string | null): void {
    this.#observed(at)
    if (decision === 'error_open') this.passedUncounted += 1
    if (decision === 'error_closed') this.refusedUncounted += 1
    if (decision !== 'deny' && decision !== 'would_deny') return
    const field = decision === 'deny' ? 'refused' : 'wouldRefuse'
    this[field] += 1
    this.#count(at, field, 1)
    if (key !== null) this.keys.add(key)
    if (project === null) return
    this.projects.add(project)
    const present = this.byProject.get(project)
    if (present !== undefined || this.byProject.size < MOST_PROJECTS) {
      this.byProject.set(project, (present ?? 0) + 1)
    }
  }

  /**
   * `attempted` is what a counter stood at: some count what they refuse. Plans and projects may have quotas of their own,
   * each with its peak; where that of one project changed, the rule was edited.
   */
  peak(project: string | null, { policy, quota, attempted, windowMs }: Omit<Peak, 'formerQuotas'>): void {
    const peak = this.#peakOf(policy, quota) ?? {
      policy,
      quota,
      attempted,
      windowMs,
      formerQuotas: new Set(),
    }
    this.peaks.set(`${policy} ${quota}`, peak)
    peak.attempted = Math.max(peak.attempted, attempted)
    const place = `${policy} ${project}`
    const before = this.#quotas.get(place)
    if (before !== undefined && before !== quota) this.#edited(peak, before)
    if (before !== undefined || this.#quotas.size < MOST_PROJECTS) this.#quotas.set(place, quota)
  }

  #peakOf(policy: string, quota: number): Peak | undefined {
    return this.peaks.get(`${policy} ${quota}`)
  }

  /** Demand under the former quota is reported with the present one. */
  #edited(peak: Peak, before: number): void {
    const former = this.#peakOf(peak.policy, before)
    this.peaks.delete(`${peak.policy} ${before}`)
    peak.attempted = Math.max(peak.attempted, former?.attempted ?? 0)
    for (const quota of [...(former?.formerQuotas ?? []), before]) peak.formerQuotas.add(quota)
    peak.formerQuotas.delete(peak.quota)
  }

  /** How long it was watched: the time between, but no more than the days on which there was anything. */
  get days(): number {
    return Math.min(Math.max(0, this.to - this.from) / DAY_MS, this.#days.size)
  }

  #observed(at: number): void {
    this.from = Math.min(this.from, at)
    this.to = Math.max(this.to, at)
    this.#days.add(Math.floor(at / DAY_MS))
  }

  #count(at: number, field: keyof Hour, weight: number): void {
    const start = Math.floor(at / HOUR_MS) * HOUR_MS
    let hour = this.hours.get(start)
    if (hour === undefined) {
      if (this.hours.size >= MOST_HOURS) return
      hour = { seen: 0, refused: 0, wouldRefuse: 0 }
      this.hours.set(start, hour)
    }
    hour[field] += weight
  }
}
