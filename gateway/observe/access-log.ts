/**
 * The access record, the one log line of a request, whether or not a rule was asked; and the observer that writes it, and
 * limits their number when everything fails at once.
 */
import { CATALOGUE, type ErrorCode } from '../errors.js'
import type { Observer } from '../plugin.js'
import type { Log } from '../types.js'
import type { Finished, Judgement } from '../verdict.js'
import { LINES_PER_SECOND, LineBudget } from './log-limits.js'
import { callerFields, clientIds, messagesOf, waitedOf } from './record.js'
import type { AccessRecord } from './record-types.js'
import { networkPrefix, type Redactor } from './redact.js'

/** Which requests are logged: none, those that failed (a 5xx, or a response that broke off), or all. */
export type LoggedRequests = 'off' | 'errors' | 'all'

export interface AccessLog extends Observer {
  /** The listener refused something before there was a request. */
  unread(refused: UnreadRequest): void
}

const SERVER_ERRORS = 500

/**
 * Per second at most 100 failures with the same status and upstream are written, then one line with the number of those
 * dropped. With `all` every request is written, without a limit.
 */
export function accessLog(requests: LoggedRequests, redactor: Redactor, log: Log): AccessLog | undefined {
  if (requests === 'off') return undefined
  const all = requests === 'all'
  const budget = new LineBudget((sort, dropped) => {
    const [status, upstream] = sort.split(' ', 2)
    const fields = { status: Number(status), upstream, dropped, per_second: LINES_PER_SECOND }
    log.warn(fields, 'requests dropped from the log')
  })
  const wants = (upstream: string, status: number) => all || budget.spend(`${status} ${upstream}`)
  return {
    finished(event) {
      if (hasFailed(event)) {
        if (wants(event.upstream, event.status)) log.warn(accessRecord(event, redactor), 'request')
      } else if (all) log.info(accessRecord(event, redactor), 'request')
    },
    unread(refused) {
      const record = unreadRecord(refused)
      if (record.status < SERVER_ERRORS) {
        if (all) log.info(record, 'request')
      } else if (wants('', record.status)) log.warn(record, 'request')
    },
    close: async () => budget.close(),
  }
}

/** Clients are not told what is wrong with a credential, so an operator must find it in the log. */
const WRONG_CREDENTIAL: ReadonlySet<string | undefined> = new Set([
  'credential-invalid',
  'insufficient-scope',
])

/** A client that disconnects is not a failure. */
function hasFailed({ status, error }: Finished): boolean {
  return status >= SERVER_ERRORS || error === 'answer-cut' || WRONG_CREDENTIAL.has(error)
}

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

function accessRecord(event: Finished, redactor: Redactor): AccessRecord {
  const { facts, project, verdict, status, error } = event
  return {
    v: 1,
    ts: new Date(event.startedAt).toISOString(),
    id: event.id,
    ...clientIds(facts),
    method: event.method.slice(0, LONGEST_METHOD),
    path: facts ? redactor.path(facts.foldedPath ?? facts.path, verdict?.outcomes[0]?.route ?? '') : null,
    project: project === undefined ? null : redactor.project(project),
    ...callerFields(event),
    ip: facts ? networkPrefix(facts.network) : null,
    status,
    source: event.source,
    error: error ?? null,
    cause: event.cause ?? uncountedIn(verdict, error),
    upstream: event.upstream,
    address: event.address || null,
    bytes_in: event.bytesIn,
    bytes_out: event.bytesOut,
    ...messagesOf(event),
    duration_ms: Math.round(event.durationMs),
    upstream_ms: event.upstreamMs === undefined ? null : Math.round(event.upstreamMs),
    limiter_us: event.limiterUs,
    ...waitedOf(event),
  }
}

/** The access record of something refused before there was a request. */
function unreadRecord({ id, code, network, at }: UnreadRequest): AccessRecord {
  return {
    v: 1,
    ts: new Date(at).toISOString(),
    id,
    ...clientIds(undefined),
    method: null,
    path: null,
    project: null,
    credential: null,
    identifier: null,
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
