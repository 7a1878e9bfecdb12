/** Which parts of a key are in the body. */
import type { Facts, Matched } from '../types.js'
import { bodyKind } from './body-kind.js'
import { reservesByBody } from './reserve/reserved.js'

/** True if part of the rule's key, or of its cost, may be in the request's body. */
export function needsBody(matched: Matched, facts: Facts): boolean {
  const { key } = matched.rule
  return (
    key.includes('json-rpc') ||
    (key.includes('email-or-flow') && bodyKind(facts) !== undefined) ||
    reservesByBody(matched, facts)
  )
}

/** True if the rule counts the JSON-RPC calls in the body. */
export function countsCalls({ rule }: Matched): boolean {
  return rule.key.includes('json-rpc')
}

/**
 * True if refusals are to answer the JSON-RPC calls in the body. A report-only rule changes nothing for clients, the form
 * of refusals included.
 */
export function answersCalls(matched: readonly Matched[]): boolean {
  return matched.some(one => one.rule.mode === 'enforce' && countsCalls(one))
}
