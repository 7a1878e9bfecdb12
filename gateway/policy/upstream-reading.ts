/** How an upstream interprets requests, where that affects matching and counting. */
import { GatewayError } from '../errors.js'
import type { Facts } from '../types.js'
import { isServedMethod } from './pattern.js'

export interface UpstreamReading {
  /** `refuse` if the upstream cuts parameters off a segment at `;`, or treats `%3B` as `;`. */
  readonly pathParameters: 'literal' | 'refuse'
  /** Whether the upstream ignores the letter case of paths. */
  readonly caseInsensitivePaths: boolean
  /** The field, in lowercase, in which a POST may name the method that the upstream then serves. */
  readonly methodOverride?: string | undefined
}

const REFUSED_PARAMETERS =
  'The path contains a ";", plain or escaped, which the service behind this route may read differently. Send it without.'

/** The facts that requests are matched and counted by. */
export type AsRead = Pick<Facts, 'method' | 'foldedPath'>

/**
 * Method and path as they are matched and counted for an upstream; unchanged for most upstreams.
 * Throws `bad-target` on a path, and `bad-request` on an overriding method, that the upstream could read otherwise than
 * the patterns do.
 */
export function readForUpstream(facts: Facts, reading: UpstreamReading | undefined): AsRead {
  if (reading === undefined) return facts
  if (reading.pathParameters === 'refuse' && /;|%3B/.test(facts.path)) {
    throw new GatewayError('bad-target', { detail: REFUSED_PARAMETERS })
  }
  const foldedPath = reading.caseInsensitivePaths ? facts.path.toLowerCase() : undefined
  return { method: methodServed(facts, reading.methodOverride), foldedPath }
}

/** Only a POST is treated as another method: frameworks that support this agree on that. */
function methodServed(facts: Facts, field: string | undefined): string {
  const named = facts.method === 'POST' && field !== undefined ? facts.header(field) : undefined
  if (named === undefined) return facts.method
  const method = named.toUpperCase()
  // How the upstream would treat any other value is unknown.
  if (!isServedMethod(method)) throw new GatewayError('bad-request', { detail: `${field} names no method.` })
  return method
}
