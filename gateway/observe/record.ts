/** The decision record: the one log line of a verdict. Pure. */
import type { Facts, Finished, Outcome, Rule, Source } from '../types.js'
import { clientIds } from './client-ids.js'
import { networkPrefix, type Redactor } from './redact.js'

export type Decision = 'allow' | 'deny' | 'would_deny' | 'error_open' | 'error_closed'

/** Enough to judge the request again by another policy. What is not known is null. */
export type DecisionRecord = ReturnType<typeof recordOf>

export type Counter = ReturnType<typeof countersOf>[number]

export type Beside = ReturnType<typeof besideOf>

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

const FORBIDDEN = 403

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

function recordOf(event: Finished, facts: Facts, decision: Decision, told: Told) {
  const { project } = event
  const { redactor, outcomes, beside } = told
  const [decisive] = outcomes
  const rule = decisive?.rule
  return {
    v: 1 as const,
    /** When the request came, ISO 8601. */
    ts: new Date(event.startedAt).toISOString(),
    id: event.id,
    ...clientIds(facts),
    decision,
    mode: rule?.mode ?? ('enforce' as const),
    ...forNowOf(rule),
    /** Null when no enforced rule applied; so are kind, src, route and key. */
    rule: rule?.id ?? null,
    kind: rule?.kind ?? null,
    ...shareOf(rule),
    rev: event.revision,
    src: rule ? placeOf(rule.source) : null,
    upstream: event.upstream,
    project: project?.id ?? null,
    plan: project?.plan ?? null,
    environment: project?.environment ?? null,
    method: facts.method,
    route: decisive?.route || null,
    /** With hashes for what may be personal: see Redactor. */
    path: redactor.path(facts.foldedPath ?? facts.path, decisive?.route ?? ''),
    /** Keyed hash of the counter's key. */
    key: decisive ? redactor.hash(decisive.key) : null,
    ip: networkPrefix(facts.network),
    /** Keyed hash of what the client is counted by: tells apart those of one `ip`. */
    client: redactor.hash(facts.network),
    ja3: facts.ja3 ?? null,
    ja4: facts.ja4 ?? null,
    auth: facts.authenticated ? ('authenticated' as const) : ('anonymous' as const),
    /** True when an identifier has checked the credential. */
    verified: project?.verified ?? false,
    upgrade: facts.upgrade ?? false,
    preflight: facts.preflight ?? false,
    /** Keyed hashes of other parts of keys, by part: `header:NAME` and `email-or-flow`. */
    parts: partsOf([...outcomes, ...beside], facts, redactor),
    counters: outcomes.flatMap(countersOf),
    /** The report-only rules that were asked as well; empty in their own records. */
    beside: beside.map(outcome => besideOf(outcome, redactor)),
    /** Status the rule asks for; null when it lets the request pass. */
    would_status: rule?.kind === 'access' && decision !== 'allow' ? FORBIDDEN : WOULD_STATUS[decision],
    /** Status the client saw; 0 when it left before one was sent. */
    sent_status: event.status,
    store: decisive?.store ?? ('none' as const),
    limiter_us: event.limiterUs,
    /** From the request's head to the end of its answer: as long as it held its slots. */
    duration_ms: Math.round(event.durationMs),
    /** Share of such decisions that are logged: 1 for all but sampled ones. */
    sample: told.sample,
  }
}

/** Entries of the admin port have no line. */
function placeOf({ file, line }: Source): string {
  return line === undefined ? file : `${file}:${line}`
}

/** What a report-only rule said of a request. */
function besideOf(outcome: Outcome, redactor: Redactor) {
  const { rule, result, key } = outcome
  const { id, kind } = rule
  return {
    rule: id,
    kind,
    ...forNowOf(rule),
    ...shareOf(rule),
    result,
    key: redactor.hash(key),
    counters: countersOf(outcome),
  }
}

/** Where the admin port has set the mode: the path of that act. */
function forNowOf(rule: Rule | undefined): { readonly mode_src?: string } {
  return rule?.forNow === undefined ? {} : { mode_src: rule.forNow.src }
}

/** Per cent of a rule's keys for which it is in force, as `mode` says of this one; only where that is a share. */
function shareOf(rule: Rule | undefined): { readonly enforce_for?: number } {
  return rule?.share === undefined ? {} : { enforce_for: rule.share.percent }
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

function countersOf({ rule, readings }: Outcome) {
  return readings.map(({ policy, quota, used, resetMs, windowMs, calendar, cost }) => ({
    policy,
    q: quota,
    used: used ?? null,
    t_ms: Math.ceil(resetMs),
    /** Length of the window; null for slots. */
    w_ms: windowMs ?? null,
    ...ownWindow(rule.id, policy),
    /** Whose period it is. */
    ...(calendar && { calendar }),
    /** What the request costs, where that is not 1: 0 when its answer tells. */
    ...(cost !== undefined && cost !== 1 && { cost }),
  }))
}

const SPECS = new Set(['burst', 'sustained'])

/** The name of a window other than the spec's two: where the rule's name ends in the policy's, nobody could tell. */
function ownWindow(rule: string, policy: string): { readonly window?: string } {
  const window = policy.slice(rule.length + 1)
  return window === '' || SPECS.has(window) ? {} : { window }
}
