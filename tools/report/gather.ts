/** Gathers decision records into a tally for each rule and mode. */
import type { Counter } from '../../gateway/observe/record-types.js'
import type { Mode } from '../../gateway/types.js'
import { type LoggedDecision, wasNegotiated } from '../log/decision-record.js'
import { DemandMeter } from './demand.js'
import { RuleTally } from './tally.js'

/** Number of rules with their own tally; more than any policy has, so that a hostile log cannot fill the memory. */
const MOST_RULES = 5000

export class Gathered {
  readonly demand = new DemandMeter()
  readonly #tallies = new Map<string, RuleTally>()
  /** Records of requests that every rule allowed. */
  allowed = 0
  /** The smallest share of such requests that was logged. */
  sample = 1
  /** Records of requests that a limit decided which the admin port had set for their project. */
  negotiated = 0
  /** Records of rules beyond the bound. */
  beyond = 0
  /** True until a record lists the report-only rules beside the enforced ones: older gateways do not write them. */
  isOld = true

  get tallies(): readonly RuleTally[] {
    return [...this.#tallies.values()].sort((a, b) => order(a.rule, b.rule) || order(a.mode, b.mode))
  }

  add(record: LoggedDecision): void {
    const { decision, at, key, project, sample, rule, kind, mode } = record
    const isNegotiated = wasNegotiated(record)
    if (isNegotiated) this.negotiated += 1
    if (decision === 'allow') {
      this.allowed += 1
      this.sample = Math.min(this.sample, sample)
    }
    if (rule !== null) {
      const tally = this.#tallyOf(rule, kind ?? '', mode)
      if (tally !== undefined) {
        // The path of one project's limit is not where the rule is written.
        if (!isNegotiated) tally.src = record.src
        tally.enforcedFor = record.enforce_for
        tally.modeSrc = record.mode_src
      }
      // For access entries, and for refusals because of a missing key part, no counter shows that the rule applied.
      const isUncounted = kind === 'access' || (decision === 'deny' && record.counters.length === 0)
      if (isUncounted && mode === 'enforce') tally?.asked(at, 1 / sample)
      tally?.decided(decision, at, key, project)
    }
    this.#countPolicies(record)
    if (decision === 'would_deny') return
    for (const beside of record.beside ?? []) {
      this.isOld = false
      const tally = this.#tallyOf(beside.rule, beside.kind, 'report-only')
      tally?.asked(at, 1 / sample)
      if (tally !== undefined) {
        tally.enforcedFor = beside.enforce_for
        tally.modeSrc = beside.mode_src
      }
      if (beside.result === 'unavailable') tally?.decided('error_closed', at, null, null)
      for (const counter of beside.counters) peakOf(tally, project, counter)
      if (tally !== undefined) this.demand.add(beside, at, record.duration_ms ?? 0)
    }
  }

  /** The rule's tally in that mode; undefined if it has no records. */
  tallyOf(rule: string, mode: Mode): RuleTally | undefined {
    return this.#tallies.get(`${mode} ${rule}`)
  }

  /** An enforced record has the counters of all its enforced rules. */
  #countPolicies({ counters, rule, kind, mode, at, sample, decision, project }: LoggedDecision): void {
    const asked = new Set<RuleTally>()
    for (const counter of counters) {
      const name = ruleOf(counter)
      const tally = this.#tallyOf(name, name === rule ? (kind ?? '') : kindOf(counter), mode)
      if (tally === undefined) continue
      asked.add(tally)
      peakOf(tally, project, counter)
    }
    if (decision !== 'would_deny') for (const tally of asked) tally.asked(at, 1 / sample)
  }

  #tallyOf(rule: string, kind: string, mode: Mode): RuleTally | undefined {
    const name = `${mode} ${rule}`
    const present = this.#tallies.get(name)
    if (present !== undefined) return present
    if (this.#tallies.size >= MOST_RULES) {
      this.beyond += 1
      return undefined
    }
    const tally = new RuleTally(rule, kind, mode)
    this.#tallies.set(name, tally)
    return tally
  }
}

function peakOf(
  tally: RuleTally | undefined,
  project: string | null,
  { policy, q: quota, used: attempted, w_ms: windowMs = null, lifetime = false, cost }: Counter,
): void {
  if (tally !== undefined && cost === 0) tally.countsAnswers = true
  if (attempted !== null) tally?.peak(project, { policy, quota, attempted, windowMs, lifetime })
}

/** A policy has its rule's name; for a bucket the name of the window follows. */
function ruleOf({ policy, window }: Counter): string {
  return window === undefined
    ? policy.replace(/\.(?:burst|sustained)$/, '')
    : policy.slice(0, -window.length - 1)
}

function kindOf(counter: Counter): string {
  if (ruleOf(counter) !== counter.policy) return 'project-limits'
  return counter.w_ms ? 'volumetric' : 'in-flight'
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
