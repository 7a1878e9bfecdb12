/** The decision record: the one log line of a verdict. Pure. */
import { placeOf } from '../compiled-rule.js'
import type { Facts, Rule } from '../types.js'
import type { Finished, Outcome } from '../verdict.js'
import type { Beside, Counter, Decision, DecisionRecord, Messages } from './record-types.js'
import { networkPrefix, type Redactor } from './redact.js'

export interface RecordOptions {
  readonly redactor: Redactor
  /** The share with which this allowed request was sampled; undefined when it was not. */
  readonly sample: number | undefined
  /**
   * Asked with the id of the deciding rule before a record is built: in a flood most are not wanted, and building one
   * is expensive.
   */
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
 * At most one record for what was enforced, named after the rule that decided: one that refuses because it cannot be
 * counted (503), else one that is used up (429), else one that let the request pass uncounted, else the first. Its
 * counters are followed by those of the other enforced rules. A sampled request has a record even if no enforced rule
 * applied; otherwise a replay under another policy would miss it.
 * Then one record for each report-only rule that would have refused.
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
  // A refused message has ended its WebSocket; those that would have been refused share one record.
  for (const totals of event.messages ?? []) {
    const { outcome, refused } = totals
    if (refused === 0 || !options.wants(outcome.rule.id)) continue
    const parts = { ...options, sample: 1, outcomes: [outcome], beside: [] }
    records.push(recordOf({ ...event, messages: [totals] }, facts, decisionOnMessage(outcome), parts))
  }
  return records
}

function decisionOnMessage(outcome: Outcome): Decision {
  return outcome.rule.mode === 'enforce' ? decisionOf(outcome) : 'would_deny'
}

/** The messages of a WebSocket; nothing for other requests. */
export function messagesOf({ messages }: Finished): { readonly messages?: readonly Messages[] } {
  if (messages === undefined) return {}
  return {
    messages: messages.map(({ outcome: { rule }, admitted, refused }) => {
      return { rule: rule.id, mode: rule.mode, admitted, refused }
    }),
  }
}

/** True when a rule could not be counted and let the request pass. */
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

interface RecordParts {
  readonly redactor: Redactor
  readonly sample: number
  /** The decisive one first. */
  readonly outcomes: readonly Outcome[]
  readonly beside: readonly Outcome[]
}

function recordOf(event: Finished, facts: Facts, decision: Decision, parts: RecordParts): DecisionRecord {
  const { project } = event
  const { redactor, outcomes, beside } = parts
  const [decisive] = outcomes
  const rule = decisive?.rule
  return {
    v: 1,
    ts: new Date(event.startedAt).toISOString(),
    id: event.id,
    ...clientIds(facts),
    decision,
    mode: rule?.mode ?? 'enforce',
    ...forNowOf(rule),
    rule: rule?.id ?? null,
    kind: rule?.kind ?? null,
    ...shareOf(rule),
    rev: event.revision,
    src: rule ? placeOf(rule.source) : null,
    upstream: event.upstream,
    project: project === undefined ? null : redactor.project(project),
    ...hostOf(event),
    plan: project?.plan ?? null,
    environment: project?.environment ?? null,
    method: facts.method,
    route: decisive?.route || null,
    path: redactor.path(facts.foldedPath ?? facts.path, decisive?.route ?? ''),
    key: decisive ? redactor.hash(decisive.key) : null,
    ip: networkPrefix(facts.network),
    client: redactor.hash(facts.network),
    ja3: facts.ja3 ?? null,
    ja4: facts.ja4 ?? null,
    auth: facts.authenticated ? 'authenticated' : 'anonymous',
    verified: project?.verified ?? false,
    ...callerFields(event),
    upgrade: facts.upgrade ?? false,
    preflight: facts.preflight ?? false,
    parts: partsOf([...outcomes, ...beside], facts, redactor),
    counters: outcomes.flatMap(countersOf),
    beside: beside.map(outcome => besideOf(outcome, redactor)),
    ...messagesOf(event),
    would_status: wouldStatus(rule, decision),
    sent_status: event.status,
    store: decisive?.store ?? 'none',
    limiter_us: event.limiterUs,
    ...waitedOf(event),
    duration_ms: Math.round(event.durationMs),
    sample: parts.sample,
  }
}

/** A refused message has no answer with a status. */
function wouldStatus(rule: Rule | undefined, decision: Decision): number | null {
  if (rule?.countsMessages) return null
  return rule?.kind === 'access' && decision !== 'allow' ? FORBIDDEN : WOULD_STATUS[decision]
}

/** The longest name that a host can have (RFC 1035). */
const LONGEST_HOST = 253

/** The host of an unknown caller, by which entries and conditions name it, if the project's id does not contain it. */
function hostOf({ facts, project }: Finished): { readonly host?: string } {
  if (facts === undefined || project?.alias === undefined || facts.host.length > LONGEST_HOST) return {}
  return { host: facts.host }
}

/** The outcome of a report-only rule for a request. */
function besideOf(outcome: Outcome, redactor: Redactor): Beside {
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

/** The admin API path by which the mode was set; nothing for a mode from the files. */
function forNowOf(rule: Rule | undefined): { readonly mode_src?: string } {
  return rule?.forNow === undefined ? {} : { mode_src: rule.forNow.src }
}

/**
 * Percentage of a rule's keys for which it is enforced (`mode` says whether for this one); only where it is enforced
 * for a share.
 */
function shareOf(rule: Rule | undefined): { readonly enforce_for?: number } {
  return rule?.share === undefined ? {} : { enforce_for: rule.share.percent }
}

/**
 * The facts contain nothing of the body, so the hash of the key is used instead: equal values make equal keys.
 */
function partsOf(outcomes: readonly Outcome[], facts: Facts, redactor: Redactor): Record<string, string> {
  const parts: Record<string, string> = {}
  for (const { rule, key } of outcomes) {
    for (const part of rule.key) {
      if (part === 'email-or-flow' || part === 'json-rpc') parts[part] = redactor.hash(key)
      if (!part.startsWith('header:')) continue
      const value = facts.header(part.slice('header:'.length))
      if (value) parts[part] = redactor.hash(value)
    }
  }
  return parts
}

function countersOf({ rule, readings }: Outcome): Counter[] {
  return readings.map(({ policy, quota, used, resetMs, windowMs, calendar, lifetime, credit, cost }) => ({
    policy,
    q: quota,
    used: used ?? null,
    t_ms: lifetime ? null : Math.ceil(resetMs),
    w_ms: windowMs ?? null,
    ...ownWindow(rule.id, policy),
    /** Unit and time zone of a calendar period. */
    ...(calendar && { calendar }),
    ...(lifetime && { lifetime, credit: credit ?? null }),
    /** What the request costs if not 1; 0 when the cost depends on the response. */
    ...(cost !== undefined && cost !== 1 && { cost }),
  }))
}

const SPECS = new Set(['burst', 'sustained'])

/**
 * The name of a window other than burst and sustained: the policy's name alone does not show where the rule's name
 * ends.
 */
function ownWindow(rule: string, policy: string): { readonly window?: string } {
  const window = policy.slice(rule.length + 1)
  return window === '' || SPECS.has(window) ? {} : { window }
}

/** How long the request waited for its rules to have room; nothing if it did not. */
export function waitedOf({ waitedMs }: Finished): { readonly waited_ms?: number } {
  return waitedMs === undefined ? {} : { waited_ms: Math.round(waitedMs) }
}

/** How the caller was found. Never the credential itself. */
export function callerFields({ credential, credentialFault, identifier }: Finished) {
  return {
    credential: credential ?? null,
    ...(credentialFault !== undefined && { credential_fault: credentialFault.slice(0, LONGEST_FAULT) }),
    identifier: identifier ?? null,
  }
}

/** Those of plugins may be of any length. */
const LONGEST_FAULT = 64

/** Most tools send far shorter ids; values that do not match are left out. */
const ID = /^[\x21-\x7e]{1,128}$/
/** W3C Trace Context, section 3.2: version, trace id, parent id, flags; ids of all zeros are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Each is null when the request has no valid one. */
export function clientIds(facts: Pick<Facts, 'header'> | undefined) {
  return {
    client_request_id: matching(ID, facts?.header('x-request-id')),
    traceparent: matching(TRACEPARENT, facts?.header('traceparent')),
  }
}

function matching(pattern: RegExp, value: string | undefined): string | null {
  return value !== undefined && pattern.test(value) ? value : null
}
