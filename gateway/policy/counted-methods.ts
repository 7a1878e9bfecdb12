/** Which methods an endpoint rule counts, for people. Pure. */
import { listed } from '../../config/problem.js'
import { parsePattern } from './pattern.js'

/** Exempt from endpoint-based limits unless a rule says `reads: true` (spec, 'Limits'). */
export const READS = ['GET', 'HEAD', 'OPTIONS']

/**
 * `POST and PATCH`, `every method but GET, HEAD and OPTIONS`.
 *
 * @param match valid patterns
 */
export function countedMethods(match: readonly string[], reads: boolean): string {
  const methods = match.map(text => parsePattern(text).method)
  if (methods.includes(undefined)) return reads ? 'every method' : `every method but ${listed(READS, 'and')}`
  const named = [...new Set(methods as string[])]
  const counted = named.filter(method => reads || !READS.includes(method))
  if (counted.length > 0) return listed(counted, 'and')
  return named.includes('GET') ? 'only the GET that opens a WebSocket' : 'no method'
}
