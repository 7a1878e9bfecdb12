/** The access record: the one log line of a request, whether or not a rule was asked. Pure. */
import { CATALOGUE, type ErrorCode } from '../errors.js'
import type { Finished, Judgement } from '../types.js'
import { clientIds } from './client-ids.js'
import { networkPrefix, type Redactor } from './redact.js'

/** Longer than any that is registered; what a client makes up may have the length of a whole head. */
const LONGEST_METHOD = 32

/** What is not known is null. */
export type AccessRecord = ReturnType<typeof accessRecord>

/** What the listener refused before there was a request. */
export interface Unread {
  readonly id: string
  readonly code: ErrorCode
  /** The client as it is counted by: the IPv4 address, or the IPv6 /64. */
  readonly network: string
  readonly at: number
}

export function accessRecord(event: Finished, redactor: Redactor) {
  const { facts, project, verdict, status, error } = event
  return {
    v: 1 as const,
    /** When the request came, ISO 8601. */
    ts: new Date(event.startedAt).toISOString(),
    id: event.id,
    ...clientIds(facts),
    method: event.method.slice(0, LONGEST_METHOD) as string | null,
    /** With hashes for what may be personal: see Redactor. */
    path: facts ? redactor.path(facts.foldedPath ?? facts.path, verdict?.outcomes[0]?.route ?? '') : null,
    project: project?.id ?? null,
    ip: facts ? networkPrefix(facts.network) : null,
    /** What the client saw; 0 when it left before an answer began. */
    status,
    source: event.source,
    error: error ?? null,
    cause: event.cause ?? uncountedIn(verdict, error),
    upstream: event.upstream,
    address: event.address || null,
    bytes_in: event.bytesIn,
    bytes_out: event.bytesOut,
    duration_ms: Math.round(event.durationMs),
    /** Until the upstream's answer began. */
    upstream_ms: event.upstreamMs === undefined ? null : Math.round(event.upstreamMs),
    limiter_us: event.limiterUs,
  }
}

/** Of what never became a request. */
export function unreadRecord({ id, code, network, at }: Unread): AccessRecord {
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
