/** The decision record: the one log line of a verdict (design section 6). Pure. */
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
  readonly rule: string
  readonly kind: string
  readonly rev: string
  /** `file:line` of the rule. */
  readonly src: string
  readonly project: string | null
  readonly plan: string | null
  readonly environment: string | null
  readonly method: string
  readonly route: string
  /** With hashes for what may be personal: see Redactor. */
  readonly path: string
  /** Keyed hash of the counter's key. */
  readonly key: string
  readonly ip: string
  readonly ja4: string | null
  readonly auth: 'authenticated' | 'anonymous'
  readonly counters: readonly Counter[]
  /** Status the rule asks for; null when it lets the request pass. */
  readonly would_status: number | null
  /** Status the client saw; 0 when it left before one was sent. */
  readonly sent_status: number
  readonly store: StoreName
  readonly limiter_us: number
  /** Share of such decisions that are logged: 1 for all but sampled ones. */
  readonly sample: number
}

export interface Counter {
  readonly policy: string
  readonly q: number
  readonly used: number | null
  readonly t_ms: number
}

export interface RecordOptions {
  readonly redactor: Redactor
  /** The share with which this allowed request was chosen; undefined when it was not. */
  readonly sample: number | undefined
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
 * Its counters are followed by those of the other enforced rules.
 * Then one for each report-only rule that would have refused. Requests that no rule applied to give none.
 */
export function decisionRecords(event: Finished, options: RecordOptions): DecisionRecord[] {
  const { facts, verdict } = event
  if (facts === undefined || verdict === undefined) return []
  const records: DecisionRecord[] = []
  const decisive = decisiveOf(verdict.outcomes)
  if (decisive !== undefined) {
    const decision = decisionOf(decisive)
    const sample = decision === 'allow' ? options.sample : 1
    const others = verdict.outcomes.filter(outcome => outcome !== decisive)
    if (sample !== undefined) {
      records.push(recordOf(event, facts, decision, [decisive, ...others], { ...options, sample }))
    }
  }
  for (const outcome of verdict.reportOnly) {
    if (outcome.result !== 'limited') continue
    records.push(recordOf(event, facts, 'would_deny', [outcome], { ...options, sample: 1 }))
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

function recordOf(
  event: Finished,
  facts: Facts,
  decision: Decision,
  outcomes: readonly [Outcome, ...Outcome[]],
  { redactor, sample }: { readonly redactor: Redactor; readonly sample: number },
): DecisionRecord {
  const { project } = event
  const [{ rule, route, key, store }] = outcomes
  return {
    v: 1,
    ts: new Date(event.startedAt).toISOString(),
    id: facts.id,
    decision,
    mode: rule.mode,
    rule: rule.id,
    kind: rule.kind,
    rev: event.revision,
    src: `${rule.source.file}:${rule.source.line}`,
    project: project?.id ?? null,
    plan: project?.plan ?? null,
    environment: project?.environment ?? null,
    method: facts.method,
    route,
    path: redactor.path(facts.path, route),
    key: redactor.hash(key),
    ip: networkPrefix(facts.network),
    ja4: facts.ja4 ?? null,
    auth: facts.authenticated ? 'authenticated' : 'anonymous',
    counters: outcomes.flatMap(countersOf),
    would_status: WOULD_STATUS[decision],
    sent_status: event.status,
    store,
    limiter_us: event.limiterUs,
    sample,
  }
}

function countersOf({ readings }: Outcome): Counter[] {
  return readings.map(({ policy, quota, used, resetMs }) => ({
    policy,
    q: quota,
    used: used ?? null,
    t_ms: Math.ceil(resetMs),
  }))
}
