/** A request from a log, ready to be decided by another policy. */

import { BY_HOST } from '../../config/words/words.js'
import { factsOf } from '../../gateway/listen/written.js'
import type { Environment, Facts, Plan } from '../../gateway/types.js'
import type { LoggedDecision } from '../log/decision-record.js'
import type { TimedEntry, Unread } from '../log/read.js'

export { factsOf }

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

/** The request of a decision record, in which the client's network is a hash. */
export function trafficOf(record: LoggedDecision): Traffic {
  const {
    id,
    method,
    path,
    project,
    parts = {},
    ja3,
    ja4,
    upgrade,
    preflight,
    auth,
    ip,
    client,
    host = hostIn(project),
    sent_status,
  } = record
  const wasRefused = record.decision === 'deny' || record.decision === 'error_closed'
  const flow = parts['email-or-flow']
  return {
    at: record.at,
    facts: factsOf(
      {
        id,
        method,
        path,
        query: flow === undefined ? '' : `?flow=${flow}`,
        // The log has only the network of an address; a hash distinguishes addresses within it.
        client: ip.replace(/\/\d+$/, ''),
        network: client === undefined ? ip : `${ip}~${client}`,
        host,
        authenticated: auth === 'authenticated',
        upgrade: upgrade ?? false,
        preflight: preflight ?? false,
        ja3: ja3 ?? undefined,
        ja4: ja4 ?? undefined,
      },
      headersOf(parts),
    ),
    project:
      project === null
        ? undefined
        : {
            id: project,
            plan: record.plan ?? undefined,
            environment: record.environment ?? undefined,
            verified: record.verified ?? false,
          },
    durationMs: record.duration_ms,
    status: wasRefused ? undefined : sent_status,
    wasRefused,
    wasAway: record.store === 'local' || record.decision.startsWith('error_'),
    wasRuledAtRunTime: wasRuledAtRunTime(record),
  }
}

/** The host of an unknown caller, if its id says it. */
function hostIn(project: string | null): string {
  return project?.startsWith(BY_HOST) ? project.slice(BY_HOST.length) : ''
}

function wasRuledAtRunTime({ src, decision, mode_src, beside = [] }: LoggedDecision): boolean {
  if (src?.startsWith('/access/')) return true
  if (mode_src !== undefined && decision !== 'allow') return true
  return beside.some(one => one.mode_src !== undefined && one.result === 'limited')
}

function headersOf(parts: Readonly<Record<string, string>>): ReadonlyMap<string, string> | undefined {
  let headers: Map<string, string> | undefined
  for (const part in parts) {
    if (!part.startsWith('header:')) continue
    headers ??= new Map()
    headers.set(part.slice('header:'.length), parts[part] as string)
  }
  return headers
}
