/** Which parts of a key are in the body. */
import type { Facts, Matched } from '../types.js'
import { bodyKind } from './body-kind.js'

/** True if part of the rule's key may be in the request's body. */
export function needsBody({ rule: { key } }: Matched, facts: Facts): boolean {
  return key.includes('json-rpc') || (key.includes('email-or-flow') && bodyKind(facts) !== undefined)
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
