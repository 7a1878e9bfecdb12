/** A verdict that was only looked at, as an explanation tells it. */
import type { DecideRequest, Questions } from '../decide/question.js'
import { CATALOGUE } from '../errors.js'
import { type Rejection, rejectionHead } from '../forward/reject.js'
import { type AnswerSettings, answer, refusal } from '../pipeline/answer.js'
import type { Facts, Matched, Outcome, Reading, Verdict } from '../types.js'
import type { ExplainedAnswer, ExplainedCounter, ExplainedRule } from './explanation.js'

/** Of a request on which no rule has spoken. */
export const NO_ANSWER: ExplainedAnswer = {
  status: null,
  code: null,
  detail: null,
  refused_by: [],
  would_be_refused_by: [],
  fields: [],
}

/** What one rule has said; undefined when it was not asked. */
export function outcomeOf({ outcomes, reportOnly }: Verdict, { rule }: Matched): Outcome | undefined {
  return [...outcomes, ...reportOnly].find(outcome => outcome.rule === rule)
}

/** @param outcome undefined when the rule has nothing to say about the request */
export function explainedRule(
  one: Matched,
  request: DecideRequest,
  outcome: Outcome | undefined,
  questions: Questions,
): ExplainedRule {
  const { rule, route } = one
  const key = questions.parts(one, request).map(({ part, value }) => ({ part, value: value ?? null }))
  return {
    rule: rule.id,
    kind: rule.kind,
    mode: rule.mode,
    src: `${rule.source.file}:${rule.source.line}`,
    pattern: route,
    skipped: outcome !== undefined ? null : questions.applies(one, request) ? 'key' : 'when',
    key,
    result: outcome?.result ?? null,
    store: outcome?.store ?? null,
    counters: (outcome?.readings ?? []).map(explainedCounter),
  }
}

export function explainedCounter(reading: Reading): ExplainedCounter {
  const { policy, quota, windowMs, used, left, resetMs, violated } = reading
  return {
    policy,
    q: quota,
    w_ms: windowMs ?? null,
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

/** An answer of the gateway's own, without the fields that only frame it. */
export function explainedRefusal(rejection: Rejection): ExplainedAnswer {
  const { status, fields } = rejectionHead(rejection)
  const { code, detail = CATALOGUE[code].detail } = rejection
  return { ...NO_ANSWER, status, code, detail, fields: pairs(fields) }
}

function refusing(outcomes: readonly Outcome[]): string[] {
  return outcomes.filter(({ result }) => result !== 'allowed').map(({ rule }) => rule.id)
}

export function pairs(fields: readonly string[]): [string, string][] {
  return Array.from({ length: fields.length / 2 }, (_, i) => [
    fields[2 * i] as string,
    fields[2 * i + 1] as string,
  ])
}
