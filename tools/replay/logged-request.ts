/** Turns a request from an access log into the facts that the gateway would have. */

import { GatewayError } from '../../gateway/errors.js'
import { clientAddress, networkOf, TrustedProxies } from '../../gateway/listen/client.js'
import { hostOf } from '../../gateway/listen/facts.js'
import { checkMethod } from '../../gateway/listen/head-rules.js'
import { parseTarget } from '../../gateway/listen/target.js'
import type { Facts } from '../../gateway/types.js'
import { factsOf, type LoggedProject, type Traffic } from './traffic.js'

/** As written in the log. */
export interface LoggedRequest {
  /** ms since the epoch. */
  readonly at: number
  readonly method: string
  /** Request target: path and query. */
  readonly target: string
  readonly host?: string | undefined
  /** An address, with or without a port. */
  readonly client?: string | undefined
  readonly durationMs?: number | undefined
  /** Status of the response. */
  readonly status?: number | undefined
  readonly authenticated?: boolean | undefined
  readonly project?: LoggedProject | undefined
  readonly ja3?: string | undefined
  readonly ja4?: string | undefined
  readonly headers?: ReadonlyMap<string, string> | undefined
}

const NOBODY = new TrustedProxies([])
const TOO_MANY_REQUESTS = 429

export function trafficOfRequest(logged: LoggedRequest): Traffic {
  const { at, project, durationMs, status } = logged
  const wasRefused = status === undefined ? undefined : status === TOO_MANY_REQUESTS
  return {
    at,
    facts: readFacts(logged),
    project,
    durationMs,
    status: wasRefused ? undefined : status,
    wasRefused,
    wasAway: false,
  }
}

/** The facts; undefined for requests that the gateway refuses unread. */
function readFacts(logged: LoggedRequest): Facts | undefined {
  const { method, target, host = '', client = '', authenticated, ja3, ja4, headers } = logged
  try {
    checkMethod(method)
    const { path, query, authority } = parseTarget(method, target)
    if (path === '*') return undefined
    const { address } = clientAddress(client, undefined, NOBODY)
    return factsOf(
      {
        id: '',
        method,
        path,
        query,
        host: hostOf(authority ?? host),
        client: address,
        network: networkOf(address),
        authenticated: authenticated ?? false,
        ja3,
        ja4,
      },
      headers,
    )
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}
