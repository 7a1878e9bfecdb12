/** The decision record: the one log line of a verdict. Pure. */
import type { Facts, Finished, Mode, Outcome, StoreName } from '../types.js'
import { networkPrefix, type Redactor } from './redact.js'

export type Decision = 'allow' | 'deny' | 'would_deny' | 'error_open' | 'error_closed'

/** Enough to judge the request again by another policy. What is not known is null. */
export interface DecisionRecord {
  readonly v: 1
  /** When the request came, ISO 8601. */
  readonly ts: string
  readonly id: string
  readonly decision: Decision
  readonly mode: Mode
  /** Null when no enforced rule applied; so are kind, src, route and key. */
  readonly rule: string | null
  readonly kind: string | null
  readonly rev: string
  /** `file:line` of the rule. */
  readonly src: string | null
  readonly project: string | null
  readonly plan: string | null
  readonly environment: string | null
  readonly method: string
  readonly route: string | null
  /** With hashes for what may be personal: see Redactor. */
  readonly path: string
  /** Keyed hash of the counter's key. */
  readonly key: string | null
  readonly ip: string
  /** Keyed hash of what the client is counted by: tells apart those of one `ip`. */
  readonly client: string
  readonly ja3: string | null
  readonly ja4: string | null
  readonly auth: 'authenticated' | 'anonymous'
  /** The request asked for a WebSocket. */
  readonly upgrade: boolean
  /** A CORS preflight, which is not charged. */
  readonly preflight: boolean
  /** Keyed hashes of other parts of keys, by part: `header:NAME` and `email-or-flow`. */
  readonly parts: Readonly<Record<string, string>>
  readonly counters: readonly Counter[]
  /** The report-only rules that were asked as well; empty in their own records. */
  readonly beside: readonly Beside[]
  /** Status the rule asks for; null when it lets the request pass. */
  readonly would_status: number | null
  /** Status the client saw; 0 when it left before one was sent. */
  readonly sent_status: number
  readonly store: StoreName
  readonly limiter_us: number
  /** From the request's head to the end of its answer: as long as it held its slots. */
  readonly duration_ms: number
  /** Share of such decisions that are logged: 1 for all but sampled ones. */
  readonly sample: number
}

export interface Counter {
  readonly policy: string
  readonly q: number
  readonly used: number | null
  readonly t_ms: number
  /** Length of the window; null for slots. */
  readonly w_ms: number | null
}

/** What a report-only rule said of a request. */
export interface Beside {
  readonly rule: string
  readonly kind: string
  readonly result: Outcome['result']
  readonly key: string
  readonly counters: readonly Counter[]
}

export interface RecordOptions {
  readonly redactor: Redactor
  /** The share with which this allowed request was chosen; undefined when it was not. */
  readonly sample: number | undefined
  /** Asked before a record is made, by the rule it is named after: in a flood most are not wanted, and none is cheap. */
  wants(rule: string): boolean
}

const WOULD_STATUS: Readonly<Record<Decision, number | null>> = {
  allow: null,
  deny: 429,
  would_deny: 429,
  error_open: null,
  error_closed: 503,
}

/**
 * At most one record for what was enforced, named after the rule that decided the answer: one that refuses because it
 * cannot be counted (503), else one that is used up (429), else one that let the request pass uncounted, else the first.
 * Its counters are followed by those of the other enforced rules. A request that was chosen for the log has one also when
 * no enforced rule applied, or a replay by another policy would miss it.
 * Then one for each report-only rule that would have refused.
 */
export function decisionRecords(event: Finished, options: RecordOptions): DecisionRecord[] {
  const { facts, verdict } = event
  if (facts === undefined || verdict === undefined) return []
  const records: DecisionRecord[] = []
  const decisive = decisiveOf(verdict.outcomes)
  const decision = decisive === undefined ? 'allow' : decisionOf(decisive)
  const sample = decision === 'allow' ? options.sample : 1
  if (sample !== undefined && options.wants(decisive?.rule.id ?? '')) {
    const others = verdict.outcomes.filter(outcome => outcome !== decisive)
    const outcomes = decisive === undefined ? [] : [decisive, ...others]
    records.push(
      recordOf(event, facts, decision, { ...options, sample, outcomes, beside: verdict.reportOnly }),
    )
  }
  for (const outcome of verdict.reportOnly) {
    if (outcome.result !== 'limited' || !options.wants(outcome.rule.id)) continue
    records.push(
      recordOf(event, facts, 'would_deny', { ...options, sample: 1, outcomes: [outcome], beside: [] }),
    )
  }
  return records
}

/** True when a rule was not counted because nobody could, and it let the request pass. */
export function passedUncounted({ result, store }: Outcome): boolean {
  return result === 'allowed' && store === 'none'
}

function decisiveOf(outcomes: readonly Outcome[]): Outcome | undefined {
  return (
    outcomes.find(({ result }) => result === 'unavailable') ??
    outcomes.find(({ result }) => result === 'limited') ??
    outcomes.find(passedUncounted) ??
    outcomes[0]
  )
}

function decisionOf(outcome: Outcome): Decision {
  if (outcome.result === 'limited') return 'deny'
  if (outcome.result === 'unavailable') return 'error_closed'
  return passedUncounted(outcome) ? 'error_open' : 'allow'
}

interface Told {
  readonly redactor: Redactor
  readonly sample: number
  /** The decisive one first. */
  readonly outcomes: readonly Outcome[]
  readonly beside: readonly Outcome[]
}

function recordOf(event: Finished, facts: Facts, decision: Decision, told: Told): DecisionRecord {
  const { project } = event
  const { redactor, outcomes, beside } = told
  const [decisive] = outcomes
  const rule = decisive?.rule
  return {
    v: 1,
    ts: new Date(event.startedAt).toISOString(),
    id: facts.id,
    decision,
    mode: rule?.mode ?? 'enforce',
    rule: rule?.id ?? null,
    kind: rule?.kind ?? null,
    rev: event.revision,
    src: rule ? `${rule.source.file}:${rule.source.line}` : null,
    project: project?.id ?? null,
    plan: project?.plan ?? null,
    environment: project?.environment ?? null,
    method: facts.method,
    route: decisive?.route ?? null,
    path: redactor.path(facts.foldedPath ?? facts.path, decisive?.route ?? ''),
    key: decisive ? redactor.hash(decisive.key) : null,
    ip: networkPrefix(facts.network),
    client: redactor.hash(facts.network),
    ja3: facts.ja3 ?? null,
    ja4: facts.ja4 ?? null,
    auth: facts.authenticated ? 'authenticated' : 'anonymous',
    upgrade: facts.upgrade ?? false,
    preflight: facts.preflight ?? false,
    parts: partsOf([...outcomes, ...beside], facts, redactor),
    counters: outcomes.flatMap(countersOf),
    beside: beside.map(outcome => besideOf(outcome, redactor)),
    would_status: WOULD_STATUS[decision],
    sent_status: event.status,
    store: decisive?.store ?? 'none',
    limiter_us: event.limiterUs,
    duration_ms: Math.round(event.durationMs),
    sample: told.sample,
  }
}

function besideOf(outcome: Outcome, redactor: Redactor): Beside {
  const { rule, result, key } = outcome
  return { rule: rule.id, kind: rule.kind, result, key: redactor.hash(key), counters: countersOf(outcome) }
}

/** The e-mail or flow stands in no facts; but equal ones made equal keys. */
function partsOf(outcomes: readonly Outcome[], facts: Facts, redactor: Redactor): Record<string, string> {
  const parts: Record<string, string> = {}
  for (const { rule, key } of outcomes) {
    for (const part of rule.key) {
      if (part === 'email-or-flow') parts[part] = redactor.hash(key)
      if (!part.startsWith('header:')) continue
      const value = facts.header(part.slice('header:'.length))
      if (value) parts[part] = redactor.hash(value)
    }
  }
  return parts
}

function countersOf({ readings }: Outcome): Counter[] {
  return readings.map(({ policy, quota, used, resetMs, windowMs }) => ({
    policy,
    q: quota,
    used: used ?? null,
    t_ms: Math.ceil(resetMs),
    w_ms: windowMs ?? null,
  }))
}
