/** The access record: the one log line of a request, whether or not a rule was asked. Pure. */
import { CATALOGUE, type ErrorCode } from '../errors.js'
import type { Finished, Judgement } from '../types.js'
import { clientIds } from './client-ids.js'
import type { AccessRecord } from './record-types.js'
import { networkPrefix, type Redactor } from './redact.js'

/** Longer than any registered method; a client may invent one as long as a whole head. */
const LONGEST_METHOD = 32

/** Something that the listener refused before there was a request. */
export interface UnreadRequest {
  readonly id: string
  readonly code: ErrorCode
  /** The client as requests are counted: the IPv4 address, or the IPv6 /64. */
  readonly network: string
  readonly at: number
}

export function accessRecord(event: Finished, redactor: Redactor): AccessRecord {
  const { facts, project, verdict, status, error } = event
  return {
    v: 1,
    ts: new Date(event.startedAt).toISOString(),
    id: event.id,
    ...clientIds(facts),
    method: event.method.slice(0, LONGEST_METHOD),
    path: facts ? redactor.path(facts.foldedPath ?? facts.path, verdict?.outcomes[0]?.route ?? '') : null,
    project: project === undefined ? null : redactor.project(project),
    ip: facts ? networkPrefix(facts.network) : null,
    status,
    source: event.source,
    error: error ?? null,
    cause: event.cause ?? uncountedIn(verdict, error),
    upstream: event.upstream,
    address: event.address || null,
    bytes_in: event.bytesIn,
    bytes_out: event.bytesOut,
    duration_ms: Math.round(event.durationMs),
    upstream_ms: event.upstreamMs === undefined ? null : Math.round(event.upstreamMs),
    limiter_us: event.limiterUs,
  }
}

/** The access record of something refused before there was a request. */
export function unreadRecord({ id, code, network, at }: UnreadRequest): AccessRecord {
  return {
    v: 1,
    ts: new Date(at).toISOString(),
    id,
    ...clientIds(undefined),
    method: null,
    path: null,
    project: null,
    ip: networkPrefix(network),
    status: CATALOGUE[code].status,
    source: 'gateway',
    error: code,
    cause:
      code === 'gateway-overloaded' ? 'listen.maxConnections or maxConnectionsPerClient is reached' : null,
    upstream: '',
    address: null,
    bytes_in: 0,
    bytes_out: 0,
    duration_ms: 0,
    upstream_ms: null,
    limiter_us: 0,
  }
}

function uncountedIn(verdict: Judgement | undefined, error: string | undefined): string | null {
  if (error !== 'limiter-unavailable') return null
  const uncounted = verdict?.outcomes.find(({ result }) => result === 'unavailable')
  return uncounted === undefined ? null : `rule ${uncounted.rule.id} could not be counted`
}
