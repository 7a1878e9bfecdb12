/** What a log contains about one rule in one mode, in bounded memory. */
import { createHash } from 'node:crypto'
import type { Decision } from '../../gateway/observe/record-types.js'
import type { Mode } from '../../gateway/types.js'

export interface Hour {
  /** Requests the rule applied to; an estimate if only a share is logged. */
  seen: number
  refused: number
  wouldRefuse: number
}

/** The highest demand on the quota of one window or slot, as reported by counters. */
export interface Peak {
  readonly policy: string
  readonly quota: number
  attempted: number
  /** Null for slots and lifetime windows. */
  readonly windowMs: number | null
  /** True for a window that never begins anew. */
  readonly lifetime?: boolean | undefined
  /** Quotas seen before the last one. */
  readonly formerQuotas: Set<number>
}

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Bounds memory when clocks are wrong: two years of hours. */
const MOST_HOURS = 20_000
/** Demand is reported for that many quotas of windows and slots. */
const MOST_PEAKS = 10_000
const MOST_FORMER_QUOTAS = 100
/** Projects counted one by one; far more than any policy declares. */
const MOST_PROJECTS = 10_000

export class RuleTally {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  src: string | null = null
  /** True when its requests' cost depends on their responses, which records do not contain. */
  countsAnswers = false
  /**
   * Percentage of its keys for which the rule is enforced, as last seen; undefined when it is enforced for all or none.
   */
  enforcedFor: number | undefined
  /** The admin API path by which this mode was set when last seen; undefined when it came from the files. */
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
  /** The quota of each policy and project as last seen. */
  readonly #quotas = new Map<string, number>()

  constructor(rule: string, kind: string, mode: Mode) {
    this.rule = rule
    this.kind = kind
    this.mode = mode
  }

  /** Records that the rule applied to a request that represents `weight` requests. */
  asked(at: number, weight: number): void {
    this.#observed(at)
    this.seen += weight
    this.#count(at, 'seen', weight)
  }

  /** Records a decision by which the rule refused a request, would have, or could not count it. */
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
   * `attempted` is the value of a counter, which for some includes refused requests. Plans and projects may have
   * different quotas, each with its peak; when the quota of one project changes, the rule was edited.
   */
  peak(
    project: string | null,
    { policy, quota, attempted, windowMs, lifetime }: Omit<Peak, 'formerQuotas'>,
  ): void {
    const peak = this.#peakOf(policy, quota) ?? {
      policy,
      quota,
      attempted,
      windowMs,
      lifetime,
      formerQuotas: new Set(),
    }
    const name = `${policy} ${quota}`
    if (!this.peaks.has(name) && this.peaks.size >= MOST_PEAKS) return
    this.peaks.set(name, peak)
    peak.attempted = Math.max(peak.attempted, attempted)
    const place = `${policy} ${project}`
    const before = this.#quotas.get(place)
    if (before !== undefined && before !== quota) this.#edited(peak, before)
    if (before !== undefined || this.#quotas.size < MOST_PROJECTS) this.#quotas.set(place, quota)
  }

  #peakOf(policy: string, quota: number): Peak | undefined {
    return this.peaks.get(`${policy} ${quota}`)
  }

  /** Demand under the former quota is reported with the current one. */
  #edited(peak: Peak, before: number): void {
    const former = this.#peakOf(peak.policy, before)
    this.peaks.delete(`${peak.policy} ${before}`)
    peak.attempted = Math.max(peak.attempted, former?.attempted ?? 0)
    for (const quota of [...(former?.formerQuotas ?? []), before]) {
      if (peak.formerQuotas.size < MOST_FORMER_QUOTAS) peak.formerQuotas.add(quota)
    }
    peak.formerQuotas.delete(peak.quota)
  }

  /** Days of observation: the time span, but at most the number of days with any record. */
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

const MOST_EXACT = 4096
const SPACE = 2 ** 48

export class Distinct {
  readonly #hashes = new Set<number>()
  /** Hashes from this on are left out, once there are too many to keep. */
  #limit = SPACE

  add(text: string): void {
    const hash = hashOf(text)
    if (hash >= this.#limit) return
    this.#hashes.add(hash)
    if (this.#hashes.size < 2 * MOST_EXACT) return
    const smallest = [...this.#hashes].sort((a, b) => a - b).slice(0, MOST_EXACT)
    this.#hashes.clear()
    for (const one of smallest) this.#hashes.add(one)
    this.#limit = smallest[MOST_EXACT - 1] as number
  }

  get isExact(): boolean {
    return this.#limit === SPACE
  }

  get count(): number {
    if (this.isExact) return this.#hashes.size
    return Math.round((this.#hashes.size / this.#limit) * SPACE)
  }
}

function hashOf(text: string): number {
  return createHash('sha1').update(text).digest().readUIntBE(0, 6)
}
