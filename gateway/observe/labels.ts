/** Label values from closed lists. */
import type { Outcome } from '../verdict.js'
import { passedUncounted } from './record.js'

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])
/** The share of a window's quota at which an allowed request counts as near the limit. */
const NEAR = 0.8

/** The method, or `other` for unknown ones, which clients can invent. */
export function methodLabel(method: string): string {
  return METHODS.has(method) ? method : 'other'
}

/** One of allowed, near, limited, would_limit and error; or unavailable, for an error that refuses the request. */
export function outcomeLabel(outcome: Outcome): string {
  if (outcome.result === 'unavailable') return outcome.rule.mode === 'enforce' ? 'unavailable' : 'error'
  if (passedUncounted(outcome)) return 'error'
  if (outcome.result === 'limited') return outcome.rule.mode === 'enforce' ? 'limited' : 'would_limit'
  // Slots are left out: an in-flight rule that admits one request at a time would always be near its limit.
  const isNear = outcome.readings.some(
    ({ windowMs, lifetime, used, quota }) =>
      (windowMs !== undefined || lifetime) && used !== undefined && used >= quota * NEAR,
  )
  return isNear ? 'near' : 'allowed'
}
