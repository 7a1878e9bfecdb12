/** What access entries and rules say to a request, and the answer it gets, by the code that decides real requests. */

import { networkText } from '../../config/words/address.js'
import { isUnlimited } from '../../config/words/bucket.js'
import { ownerOfTrial } from '../../config/words/share.js'
import { placeOf } from '../compiled-rule.js'
import { needsBody } from '../decide/body-parts.js'
import { type Counters, lookingDecider } from '../decide/dry-run.js'
import type { DecideRequest, Questions } from '../decide/question.js'
import { reservedCostOf } from '../decide/reserve/reserved.js'
import { CATALOGUE } from '../errors.js'
import { type Rejection, rejectionHead } from '../forward/reject.js'
import type { RuntimeEntry } from '../overrides/access-entry.js'
import type { StoredQuota } from '../overrides/quota.js'
import { quotaId } from '../overrides/quota-id.js'
import { type AnswerSettings, answer, OPTIONS_ANSWER, REQUEST_ID, refusal } from '../pipeline/answer.js'
import type { Entered } from '../pipeline/enter.js'
import { ownFields, routeFieldsOf } from '../pipeline/route-fields.js'
import type { AccessMatch, Ruling } from '../policy/access.js'
import { methodsOf, type Policy } from '../policy/policy.js'
import type { Calls, Facts, Matched, Project, Rule } from '../types.js'
import type { Outcome, Reading, Verdict } from '../verdict.js'
import type { ExplainedAccess, ExplainedAnswer, ExplainedCounter, ExplainedRule } from './explanation.js'

/** For a request that no rule has decided. */
export const NO_ANSWER: ExplainedAnswer = {
  status: null,
  code: null,
  detail: null,
  refused_by: [],
  would_be_refused_by: [],
  wait: null,
  fields: [],
}

/** The outcome of one rule; undefined if it was not asked. */
export function outcomeOf({ outcomes, reportOnly }: Verdict, { rule }: Matched): Outcome | undefined {
  // Compared by name: for a key outside the rule's share, a report-only copy has decided.
  return [...outcomes, ...reportOnly].find(outcome => outcome.rule.id === rule.id)
}

/** What else an explanation of a rule takes. */
interface Beside {
  readonly questions: Questions
  readonly methods: string | undefined
  readonly quotas: SetQuotas
}

/** Negotiated limits set on the admin port of a running gateway, by id. */
type SetQuotas = ReadonlyMap<string, StoredQuota>

/** @param outcome undefined when the rule has nothing to say about the request */
function explainedRule(
  one: Matched,
  request: DecideRequest,
  outcome: Outcome | undefined,
  { questions, methods, quotas }: Beside,
): ExplainedRule {
  const { rule, route } = one
  const key = questions.parts(one, request).map(({ part, value }) => ({ part, value: value ?? null }))
  return {
    rule: rule.id,
    kind: rule.kind,
    mode: outcome?.rule.mode ?? rule.mode,
    ...explainedForNow(rule),
    share: explainedShare(outcome?.rule ?? rule, outcome !== undefined),
    src: placeOf(rule.source),
    ...explainedNegotiation(rule, request.project, quotas),
    pattern: route,
    methods: methods ?? null,
    skipped: outcome ? null : whySkipped(one, request, questions),
    key,
    result: outcome?.result ?? null,
    store: outcome?.store ?? null,
    counters: (outcome?.readings ?? []).map(reading => ({
      ...explainedCounter(reading),
      ...(reservedCostOf(one) && { reserved: true as const }),
    })),
  }
}

/** Who has set the quota on the admin port, and why; undefined for those of the files. */
function explainedNegotiation({ id, source }: Rule, project: Project, quotas: SetQuotas) {
  const bucket = ownerOfTrial(id) ?? id
  const set = source.line === undefined ? quotas.get(quotaId({ project: project.id, bucket })) : undefined
  return set && { negotiated: { why: set.why, set_by: set.by, until: set.until ?? null } }
}

/** The fields of a rule whose mode was set on the admin port; undefined for other rules. */
export function explainedForNow({ forNow }: Rule) {
  return forNow && { declared_mode: forNow.declared, mode_src: forNow.src }
}

/**
 * The share that the rule is enforced for, and whether this request is inside it, if that is known; null without a
 * share.
 */
function explainedShare({ share, mode }: Rule, isAsked: boolean) {
  if (share === undefined) return null
  return { ...share, inside: isAsked || share.of === 'projects' ? mode === 'enforce' : null }
}

function whySkipped(
  one: Matched,
  request: DecideRequest,
  questions: Questions,
): NonNullable<ExplainedRule['skipped']> {
  if (one.rule.countsMessages && !request.facts.upgrade) return 'messages'
  if (questions.applies(one, request)) return 'key'
  return one.rule.mode === 'enforce' && isUnlimited(one.rule) ? 'unlimited' : 'when'
}

/** One window, or the slots, of a rule. */
export function explainedCounter(reading: Reading): ExplainedCounter {
  const { policy, quota, windowMs, calendar, lifetime, credit, cost, used, left, resetMs, violated } = reading
  return {
    policy,
    q: quota,
    w_ms: windowMs ?? null,
    ...(calendar && { calendar }),
    ...(lifetime && { lifetime, credit: credit ?? null }),
    ...(cost !== undefined && cost > 1 && { cost }),
    used: used === undefined ? null : Math.min(used, quota),
    attempted: used ?? null,
    left: left ?? null,
    t_ms: lifetime ? null : Math.ceil(resetMs),
    violated,
  }
}

/** The answer as the gateway would give it, or the fields it would add to the upstream's. */
export function explainedAnswer(
  verdict: Verdict,
  facts: Facts,
  settings: AnswerSettings,
  { route, project, calls }: Partial<Pick<Entered, 'route' | 'project'>> & { calls?: Calls | undefined } = {},
): ExplainedAnswer {
  const ofRoute = routeFieldsOf({ facts, project, route, matched: [] })
  const { fields, rejection } = answer(verdict, facts, settings, undefined, ofRoute)
  const would_be_refused_by = refusing(verdict.reportOnly)
  if (rejection === undefined) {
    const { status = null } = route?.answer ?? {}
    const own = ownFields(route?.answer?.fieldsFor(facts, project) ?? [], ofRoute)
    return { ...NO_ANSWER, status, would_be_refused_by, fields: pairs([...own, ...fields]) }
  }
  const refused_by = refusing(verdict.outcomes)
  return {
    ...explainedRefusal(refusal({ ...rejection, calls }, facts, settings, fields, ofRoute)),
    refused_by,
    would_be_refused_by,
    wait: explainedWait(verdict.outcomes),
  }
}

/** When there is room is not known of slots. */
function explainedWait(outcomes: readonly Outcome[]): ExplainedAnswer['wait'] {
  const refusing = outcomes.filter(({ result }) => result !== 'allowed')
  const upTo = Math.min(...refusing.map(({ rule, result }) => (result === 'limited' && rule.waits?.ms) || 0))
  // Who lacks a part of the key is refused for that.
  if (!refusing.every(({ readings }) => readings.some(one => one.violated))) return null
  const violated = refusing.flatMap(({ readings }) => readings).filter(one => one.violated)
  const ofWindows = violated.filter(({ windowMs }) => windowMs !== undefined)
  const roomIn = Math.max(0, ...ofWindows.map(({ resetMs }) => Math.ceil(resetMs)))
  if (upTo === 0 || roomIn > upTo) return null
  return { up_to_ms: upTo, room_in_ms: ofWindows.length < violated.length ? null : roomIn }
}

/** A response of the gateway itself, without the fields that only frame it. */
export function explainedRefusal(rejection: Rejection): ExplainedAnswer {
  const { status, fields } = rejectionHead(rejection)
  const { code, detail = CATALOGUE[code].detail } = rejection
  return { ...NO_ANSWER, status, code, detail, fields: pairs(fields) }
}

/** The answer to OPTIONS for the gateway, and to a preflight of nobody. */
export function unaskedAnswer(entered: Entered | undefined): ExplainedAnswer {
  const { route, facts } = entered ?? {}
  const { status, fields } = OPTIONS_ANSWER
  if (entered === undefined || facts === undefined || !route?.isPreflight || route.answer === undefined)
    return { ...NO_ANSWER, status, fields: pairs(fields) }
  const own = ownFields(route.answer.fieldsFor(facts, undefined), routeFieldsOf(entered))
  return { ...NO_ANSWER, status: route.answer.status, fields: pairs(own) }
}

function refusing(outcomes: readonly Outcome[]): string[] {
  return outcomes.filter(({ result }) => result !== 'allowed').map(({ rule }) => rule.id)
}

/** The fields as pairs, without the request's id: a question is not a request. */
export function pairs(fields: readonly string[]): [string, string][] {
  const all = Array.from({ length: fields.length / 2 }, (_, i): [string, string] => [
    fields[2 * i] as string,
    fields[2 * i + 1] as string,
  ])
  return all.filter(([name]) => name !== REQUEST_ID)
}

/** @param runtime entries set on the admin port of a running gateway, by id */
export function explainedAccess(
  ruling: Ruling | undefined,
  runtime: ReadonlyMap<string, RuntimeEntry> = new Map(),
): ExplainedAccess[] {
  return [ruling?.enforced, ruling?.reported].flatMap(match => (match ? explainedMatch(match, runtime) : []))
}

function explainedMatch(
  { entry: { rule, action, until }, by }: AccessMatch,
  runtime: ReadonlyMap<string, RuntimeEntry>,
): ExplainedAccess {
  const { id, mode, source } = rule
  const said = source.line === undefined ? runtime.get(id) : undefined
  return {
    entry: id,
    action,
    mode,
    ...explainedForNow(rule),
    ...(typeof by === 'string' ? { project: by } : { network: networkText(by) }),
    src: placeOf(source),
    why: said?.why ?? null,
    set_by: said?.by ?? null,
    until: until === undefined ? null : new Date(until).toISOString(),
  }
}

/** Adds the access entries that refuse the request, or would refuse it, to the answer. */
export function withAccess(answer: ExplainedAnswer, ruling: Ruling | undefined): ExplainedAnswer {
  const refusing = (match: AccessMatch | undefined) =>
    match?.entry.action === 'deny' ? [match.entry.rule.id] : []
  return {
    ...answer,
    refused_by: [...refusing(ruling?.enforced), ...answer.refused_by],
    would_be_refused_by: [...answer.would_be_refused_by, ...refusing(ruling?.reported)],
  }
}

/** The verdict on a request, and what each of its rules says, those included that a refusal leaves unasked. */
export async function verdictOn(
  request: DecideRequest,
  policy: Policy,
  counters: Counters,
  quotas: SetQuotas = new Map(),
): Promise<{ verdict: Verdict; rules: ExplainedRule[] }> {
  const verdict = await whole(request, counters)
  const rules: ExplainedRule[] = []
  for (const one of request.matched) {
    const alone = { ...request, matched: [one], isMessage: messageOf(one, request) }
    const outcome = outcomeOf(verdict, one) ?? outcomeOf(await look(alone, counters), one)
    const endpoint = policy.rules.find(({ rule }) => rule === one.rule)
    const methods = endpoint && methodsOf(endpoint)
    rules.push(explainedRule(one, alone, outcome, { questions: counters.questions, methods, quotas }))
  }
  return { verdict, rules }
}

/** For a request that opens a WebSocket, a rule that counts messages is asked about the first of them. */
function messageOf({ rule }: Matched, { facts }: DecideRequest): true | undefined {
  return rule.countsMessages && facts.upgrade ? true : undefined
}

/** As in the pipeline, rules that do not need the body are asked before it is read. */
async function whole(request: DecideRequest, counters: Counters): Promise<Verdict> {
  const { facts, bodyPrefix } = request
  if (bodyPrefix === undefined) return look(request, counters)
  const matched = request.matched.filter(one => !needsBody(one, facts))
  const refusal = await lookingDecider(counters).refuseUnread({ ...request, matched, bodyPrefix: undefined })
  await refusal?.settled
  return refusal ?? look(request, counters)
}

async function look(request: DecideRequest, counters: Counters): Promise<Verdict> {
  const verdict = await lookingDecider(counters).decide(request)
  await verdict.settled
  return verdict
}
