/** From a verdict, or a fault, to the answer: the one place that knows status, code and every field, for whoever tells them. */
import { corsFields, exposedFields, type Families, rateLimitFields } from '../forward/fields.js'
import { type Rejection, rejectionOf } from '../forward/reject.js'
import type { Facts, Verdict } from '../types.js'

export interface AnswerSettings {
  readonly rateLimitFields: Families
  readonly cors: 'echo' | 'none'
  /** Share of a wait by which Retry-After may be longer. */
  readonly retryJitter: number
}

export interface GivenAnswer {
  /** Flat: those that the gateway adds, whoever answers. */
  readonly fields: string[]
  /** What the gateway answers by itself; undefined where the upstream has the word. */
  readonly rejection?: Rejection
}

/** The answer that a verdict leads to. */
export function answer(verdict: Verdict, facts: Facts, settings: AnswerSettings): GivenAnswer {
  const fields = rateLimitFields(verdict, settings.rateLimitFields)
  if (fields.length > 0 && facts.header('origin') !== undefined) fields.push(...exposedFields())
  if (verdict.allowed) return { fields }
  return { fields, rejection: rejectionOf(verdict, facts.id, settings.retryJitter) }
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
  added: readonly string[] = [],
): Rejection {
  const own = facts === undefined ? [] : corsFields(facts.header('origin'), settings.cors)
  return { ...rejection, fields: [...added, ...own] }
}
