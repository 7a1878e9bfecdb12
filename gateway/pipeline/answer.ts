/** Turns a verdict or a fault into the answer: the one place that decides status, code and every field. */
import { corsFields, exposedFields, type Families, limitNames, rateLimitFields } from '../forward/fields.js'
import { type Rejection, rejectionOf } from '../forward/reject.js'
import type { Ruling } from '../policy/access.js'
import type { Facts, Verdict } from '../types.js'
import { isExempt } from './access.js'

export interface AnswerSettings {
  readonly rateLimitFields: Families
  readonly cors: 'echo' | 'none'
  /** Share of a wait by which Retry-After may be longer. */
  readonly retryJitter: number
}

export interface GivenAnswer {
  /** Flat: those that the gateway adds, whoever answers. */
  readonly fields: string[]
  /** Lower-case names of the upstream's that are not passed on, though nothing stands in their place. */
  readonly removed?: readonly string[]
  /** What the gateway answers by itself; undefined where the upstream has the word. */
  readonly rejection?: Rejection
}

/** By which a client can name its request to the operator: it stands in every line of the log about it. */
export const REQUEST_ID = 'X-Request-Id'

/** Fields of every answer. Flat. */
export function answerFieldsOf(requestId: string): string[] {
  return [REQUEST_ID, requestId]
}

/** The answer that a verdict leads to, and what the access entries said before. */
export function answer(
  verdict: Verdict,
  facts: Facts,
  settings: AnswerSettings,
  ruling?: Ruling,
): GivenAnswer {
  const fields = rateLimitFields(verdict, settings.rateLimitFields)
  if (fields.length > 0 && facts.header('origin') !== undefined) fields.push(...exposedFields())
  fields.push(REQUEST_ID, facts.id)
  if (!verdict.allowed) return { fields, rejection: rejectionOf(verdict, facts.id, settings.retryJitter) }
  const isUnlimited = verdict.unlimited || isExempt(ruling)
  return isUnlimited ? { fields, removed: limitNames(settings.rateLimitFields) } : { fields }
}

/**
 * A refusal with the fields that only our own answers carry.
 *
 * @param facts absent when the request was too malformed to have any
 * @param added of an answer to the verdict before, if there was one
 */
export function refusal(
  rejection: Rejection,
  facts: Facts | undefined,
  settings: AnswerSettings,
  added: readonly string[] = answerFieldsOf(rejection.requestId),
): Rejection {
  const own = facts === undefined ? [] : corsFields(facts.header('origin'), settings.cors)
  const fields = own.length === 0 ? added : [...added, ...own]
  const { code, requestId, detail, policies, retryAfter } = rejection
  return { code, requestId, detail, policies, retryAfter, fields }
}
