/** Reads the gateway's own log as traffic: each request once, however many records it has. */
import { BY_HOST } from '../../config/words/words.js'
import { callNamed } from '../../gateway/decide/json-rpc.js'
import { factsOf } from '../../gateway/listen/written.js'
import { type Dropped, decisionReader, type LoggedDecision, wasNegotiated } from '../log/decision-record.js'
import type { Format, Traffic } from './traffic.js'

/** What the records of a log leave out. */
export interface Sampling {
  readonly dropped: Dropped
  /** Records of requests that were admitted. */
  admitted: number
  /** The smallest share of them that was logged. */
  sample: number
}

/** The status of a WebSocket that was opened. */
const SWITCHED = 101

/** Ids to remember: the records of one request are adjacent, unless the lines of several gateways are mixed. */
const REMEMBERED = 1000

export function decisionRecords(sampling: Sampling): Format {
  const read = decisionReader(sampling.dropped)
  const ids = new Set<string>()
  return {
    name: 'records',
    title: 'decision records',
    facts: new Set(['project', 'client', 'ja3', 'ja4', 'auth', 'duration']),
    read(line) {
      const record = read(line)
      if (record === undefined || 'trouble' in record) return record
      if (record.decision === 'allow') {
        sampling.admitted += 1
        sampling.sample = Math.min(sampling.sample, record.sample)
      }
      if (ids.has(record.id)) return undefined
      ids.add(record.id)
      if (ids.size > REMEMBERED) ids.delete(ids.values().next().value as string)
      return trafficOf(record)
    },
  }
}

/** The request of a decision record, in which the client's network is a hash. */
function trafficOf(record: LoggedDecision): Traffic {
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
  // A WebSocket whose message was refused has been opened.
  const wasOpened = sent_status === SWITCHED
  const wasRefused = !wasOpened && (record.decision === 'deny' || record.decision === 'error_closed')
  const flow = parts['email-or-flow']
  const call = parts['json-rpc']
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
    calls: call === undefined ? undefined : callNamed(call),
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

function wasRuledAtRunTime(record: LoggedDecision): boolean {
  const { src, decision, mode_src, beside = [] } = record
  if (src?.startsWith('/access/') || wasNegotiated(record)) return true
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
