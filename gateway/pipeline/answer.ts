/** Turns a verdict or an error into the response: the only place that decides status, code and fields. */
import { SERVED_METHODS } from '../errors.js'
import { corsFields, exposedFields, type Families, limitNames, rateLimitFields } from '../forward/fields.js'
import { type Rejection, rejectionOf } from '../forward/reject.js'
import type { Ruling } from '../policy/access.js'
import type { Facts } from '../types.js'
import type { Verdict } from '../verdict.js'
import { isExempt } from './access.js'
import type { RouteFields } from './request-context.js'
import { refusalFields } from './route-fields.js'

export interface AnswerSettings {
  readonly rateLimitFields: Families
  readonly cors: 'echo' | 'none'
  /** Per cent of a wait by which Retry-After may be longer. */
  readonly retryJitter: number
}

export interface GivenAnswer {
  /** Flat list of the fields that the gateway adds, no matter where the response comes from. */
  readonly fields: string[]
  /** Lower-case names of upstream fields that are removed without a replacement. */
  readonly removed?: readonly string[]
  /** The gateway's own response; undefined if the request is forwarded. */
  readonly rejection?: Rejection
}

/** Identifies a request to client and operator: every log line about the request contains this id. */
export const REQUEST_ID = 'X-Request-Id'

/** Fields of every response, as a flat list. */
export function answerFieldsOf(requestId: string): string[] {
  return [REQUEST_ID, requestId]
}

/**
 * The response that follows from a verdict, and from the access decision before it.
 *
 * @param route the fields of its route, if that has any
 */
export function answer(
  verdict: Verdict,
  facts: Facts,
  settings: AnswerSettings,
  ruling?: Ruling,
  route?: RouteFields,
): GivenAnswer {
  const fields = rateLimitFields(verdict, settings.rateLimitFields)
  const isForPage = facts.header('origin') !== undefined && route?.isReadable !== false
  if (fields.length > 0 && isForPage) fields.push(...exposedFields())
  fields.push(REQUEST_ID, facts.id)
  if (!verdict.allowed) return { fields, rejection: rejectionOf(verdict, facts.id, settings.retryJitter) }
  const isUnlimited = verdict.unlimited !== undefined || isExempt(ruling)
  return isUnlimited ? { fields, removed: limitNames(settings.rateLimitFields) } : { fields }
}

/**
 * A refusal with the fields that only the gateway's own responses have.
 *
 * @param facts absent when the request was too malformed to have any
 * @param answerFields fields of the response that the verdict led to, if there was one
 * @param route the fields of its route, if that has any
 */
export function refusal(
  rejection: Rejection,
  facts: Facts | undefined,
  settings: AnswerSettings,
  answerFields: readonly string[] = answerFieldsOf(rejection.requestId),
  route?: RouteFields,
): Rejection {
  const added = refusalFields(answerFields, route)
  // A route with `cors` says itself which pages may read its refusals.
  const isEchoed = facts !== undefined && !route?.hasCors
  const own = isEchoed ? corsFields(facts.header('origin'), settings.cors) : []
  const { code, requestId, detail, policies, retryAfter, calls, fields: also = [] } = rejection
  const fields = own.length + also.length === 0 ? added : [...added, ...also, ...own]
  return { code, requestId, detail, policies, retryAfter, calls, fields }
}

/** Response to an OPTIONS request for the gateway itself. */
export const OPTIONS_ANSWER = { status: 204, fields: ['Allow', SERVED_METHODS] }
