/** The parts of an explanation that describe a verdict. */
import { isUnlimited } from '../../config/words/bucket.js'
import type { DecideRequest, Questions } from '../decide/question.js'
import { CATALOGUE } from '../errors.js'
import { type Rejection, rejectionHead } from '../forward/reject.js'
import { type AnswerSettings, answer, REQUEST_ID, refusal } from '../pipeline/answer.js'
import type {
  Calendar,
  Facts,
  KeyPart,
  Matched,
  Mode,
  Outcome,
  Reading,
  Rule,
  Share,
  StoreName,
  Verdict,
} from '../types.js'

export interface ExplainedRule {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  /** Of a mode that the admin port has set: what the file says, and the path that set it. */
  readonly declared_mode?: Mode
  readonly mode_src?: string
  /** The share that it is enforced for, and whether this request is inside it, if that is known; null without a share. */
  readonly share: (Share & { readonly inside: boolean | null }) | null
  readonly src: string
  readonly pattern: string
  /** The methods that the rule counts, in words; null for a bucket, whose pattern says it. */
  readonly methods: string | null
  /**
   * `unlimited`: the rule counts nothing. `when`: its conditions leave the request out. `key`: a part of its key is
   * absent.
   */
  readonly skipped: 'unlimited' | 'when' | 'key' | null
  readonly key: readonly { readonly part: KeyPart; readonly value: string | null }[]
  readonly result: Outcome['result'] | null
  /** The store that counted. */
  readonly store: StoreName | null
  readonly counters: readonly ExplainedCounter[]
}
export interface ExplainedCounter {
  readonly policy: string
  readonly q: number
  /** Length of the window; null for slots. */
  readonly w_ms: number | null
  /** Only for calendar windows: their periods. */
  readonly calendar?: Calendar
  /** Includes this request if it would be admitted. Null when no store counted. */
  readonly used: number | null
  /** `used` without the quota as upper bound: more than it if a rule counts what it refuses, or only reports. */
  readonly attempted: number | null
  readonly left: number | null
  /** Until more comes back; if the request is refused, until it could pass. */
  readonly t_ms: number
  readonly violated: boolean
  /** What the request costs, if that is more than one. */
  readonly cost?: number
}

export interface ExplainedAnswer {
  /** Null if the upstream decides it. */
  readonly status: number | null
  /** Null unless it is a refusal. */
  readonly code: string | null
  readonly detail: string | null
  /** Enforced rules that refuse it. */
  readonly refused_by: readonly string[]
  /** Report-only rules that would refuse it. */
  readonly would_be_refused_by: readonly string[]
  /** Fields the gateway adds to the answer. */
  readonly fields: readonly (readonly [string, string])[]
}

/** For a request that no rule has decided. */
export const NO_ANSWER: ExplainedAnswer = {
  status: null,
  code: null,
  detail: null,
  refused_by: [],
  would_be_refused_by: [],
  fields: [],
}

/** The outcome of one rule; undefined if it was not asked. */
export function outcomeOf({ outcomes, reportOnly }: Verdict, { rule }: Matched): Outcome | undefined {
  // Compared by name: for a key outside the rule's share, a report-only copy has decided.
  return [...outcomes, ...reportOnly].find(outcome => outcome.rule.id === rule.id)
}

/** @param outcome undefined when the rule has nothing to say about the request */
export function explainedRule(
  one: Matched,
  request: DecideRequest,
  outcome: Outcome | undefined,
  questions: Questions,
  methods: string | undefined,
): ExplainedRule {
  const { rule, route } = one
  const key = questions.parts(one, request).map(({ part, value }) => ({ part, value: value ?? null }))
  return {
    rule: rule.id,
    kind: rule.kind,
    mode: outcome?.rule.mode ?? rule.mode,
    ...explainedForNow(rule),
    share: explainedShare(outcome?.rule ?? rule, outcome !== undefined),
    src: `${rule.source.file}:${rule.source.line}`,
    pattern: route,
    methods: methods ?? null,
    skipped: outcome ? null : whySkipped(one, request, questions),
    key,
    result: outcome?.result ?? null,
    store: outcome?.store ?? null,
    counters: (outcome?.readings ?? []).map(explainedCounter),
  }
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
): 'unlimited' | 'when' | 'key' {
  if (questions.applies(one, request)) return 'key'
  return one.rule.mode === 'enforce' && isUnlimited(one.rule) ? 'unlimited' : 'when'
}

/** One window, or the slots, of a rule. */
export function explainedCounter(reading: Reading): ExplainedCounter {
  const { policy, quota, windowMs, calendar, cost, used, left, resetMs, violated } = reading
  return {
    policy,
    q: quota,
    w_ms: windowMs ?? null,
    ...(calendar && { calendar }),
    ...(cost !== undefined && cost > 1 && { cost }),
    used: used === undefined ? null : Math.min(used, quota),
    attempted: used ?? null,
    left: left ?? null,
    t_ms: Math.ceil(resetMs),
    violated,
  }
}

/** The answer as the gateway would give it, or the fields it would add to the upstream's. */
export function explainedAnswer(verdict: Verdict, facts: Facts, settings: AnswerSettings): ExplainedAnswer {
  const { fields, rejection } = answer(verdict, facts, settings)
  const would_be_refused_by = refusing(verdict.reportOnly)
  if (rejection === undefined) return { ...NO_ANSWER, would_be_refused_by, fields: pairs(fields) }
  const refused_by = refusing(verdict.outcomes)
  return {
    ...explainedRefusal(refusal(rejection, facts, settings, fields)),
    refused_by,
    would_be_refused_by,
  }
}

/** A response of the gateway itself, without the fields that only frame it. */
export function explainedRefusal(rejection: Rejection): ExplainedAnswer {
  const { status, fields } = rejectionHead(rejection)
  const { code, detail = CATALOGUE[code].detail } = rejection
  return { ...NO_ANSWER, status, code, detail, fields: pairs(fields) }
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
