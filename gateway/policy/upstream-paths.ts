/** How an upstream reads paths, where that bears on what its requests are matched and counted by. */
import { GatewayError } from '../errors.js'
import type { Facts } from '../types.js'

export interface PathReading {
  /** `refuse` where the upstream cuts parameters off a segment at `;`, or takes `%3B` for it. */
  readonly pathParameters: 'literal' | 'refuse'
  /** Whether the upstream takes letters of either case for the same. */
  readonly caseInsensitivePaths: boolean
}

const REFUSED_PARAMETERS =
  'The path holds a ";", plain or escaped, which the service behind this route may read otherwise. Send it without.'

/**
 * The path in small letters, where the upstream takes either case for the same.
 * Throws `bad-target` on a path that the upstream could read otherwise than the patterns do.
 */
export function foldedPathOf(facts: Facts, reading: PathReading | undefined): string | undefined {
  if (reading === undefined) return undefined
  if (reading.pathParameters === 'refuse' && /;|%3B/.test(facts.path)) {
    throw new GatewayError('bad-target', { detail: REFUSED_PARAMETERS })
  }
  return reading.caseInsensitivePaths ? facts.path.toLowerCase() : undefined
}
