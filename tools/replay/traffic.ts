import { GatewayError } from '../../gateway/errors.js'
import { readLine, type WrittenLine } from '../../gateway/listen/written.js'
import type { Calls, Environment, Facts, Plan } from '../../gateway/types.js'
import type { TimedEntry, Unread } from '../log/read.js'

/** What a log may contain besides method, path and time, as needed for keys. */
export type LoggedFacts =
  | 'project'
  | 'host'
  | 'client'
  | 'ja3'
  | 'ja4'
  | 'auth'
  | 'duration'
  | `header:${string}`
  | 'email-or-flow'

export interface Traffic extends TimedEntry {
  /** Undefined when the gateway would refuse the request unread, such as for a malformed path. */
  readonly facts: Facts | undefined
  /** The project that the log names; otherwise the policy's identifiers find it. */
  readonly project: LoggedProject | undefined
  /** The JSON-RPC calls in its body, by a hash, if the log knows of any. */
  readonly calls?: Calls | undefined
  /** Undefined when the log does not contain it. */
  readonly durationMs: number | undefined
  /** Status of its response; undefined when the log does not contain it, or the request was refused then. */
  readonly status: number | undefined
  /** Whether it was refused for a limit then; undefined when the log does not say. */
  readonly wasRefused: boolean | undefined
  /** True when it was decided while the counter store was unavailable. */
  readonly wasAway: boolean
  /** True when an access entry or a mode set on the admin port decided it. */
  readonly wasRuledAtRunTime?: boolean
}

export interface LoggedProject {
  readonly id: string
  readonly plan: Plan | undefined
  readonly environment: Environment | undefined
  /** Whether the gateway had checked its credential. */
  readonly verified: boolean
}

/** A kind of log. */
export interface Format {
  readonly name: string
  readonly title: string
  /** What each of its lines records; for headers, e-mail addresses and flow ids, `Seen` looks at the lines. */
  readonly facts: ReadonlySet<LoggedFacts>
  read(line: string): Traffic | Unread | undefined
}

/** A request as an access log has it. */
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
    facts: readFacts(logged),
    project,
    durationMs,
    status: wasRefused ? undefined : status,
    wasRefused,
    wasAway: false,
  }
}

/** Undefined for requests that the gateway refuses unread. */
function readFacts(logged: LoggedRequest): Facts | undefined {
  try {
    return readLine(logged, logged.headers)
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}
