/** Turns a request from an access log into the facts that the gateway would have. */

import { GatewayError } from '../../gateway/errors.js'
import { readLine, type WrittenLine } from '../../gateway/listen/written.js'
import type { Facts } from '../../gateway/types.js'
import type { LoggedProject, Traffic } from './traffic.js'

/** As written in the log. */
export interface LoggedRequest extends WrittenLine {
  /** ms since the epoch. */
  readonly at: number
  readonly durationMs?: number | undefined
  /** Status of the response. */
  readonly status?: number | undefined
  readonly project?: LoggedProject | undefined
  readonly headers?: ReadonlyMap<string, string> | undefined
}

const TOO_MANY_REQUESTS = 429

export function trafficOfRequest(logged: LoggedRequest): Traffic {
  const { at, project, durationMs, status } = logged
  const wasRefused = status === undefined ? undefined : status === TOO_MANY_REQUESTS
  return {
    at,
    facts: factsOf(logged),
    project,
    durationMs,
    status: wasRefused ? undefined : status,
    wasRefused,
    wasAway: false,
  }
}

/** The facts; undefined for requests that the gateway refuses unread. */
function factsOf(logged: LoggedRequest): Facts | undefined {
  try {
    return readLine(logged, logged.headers)
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}
