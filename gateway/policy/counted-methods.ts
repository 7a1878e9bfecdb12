/** Which methods an endpoint rule counts, for people. Pure. */
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
  if (methods.includes(undefined)) return reads ? 'every method' : `every method but ${named(READS)}`
  const written = [...new Set(methods as string[])]
  const counted = written.filter(method => reads || !READS.includes(method))
  if (counted.length > 0) return named(counted)
  return written.includes('GET') ? 'only the GET that opens a WebSocket' : 'no method'
}

/** `A, B and C`. */
function named(methods: readonly string[]): string {
  return methods.join(', ').replace(/, ([^,]*)$/, ' and $1')
}
