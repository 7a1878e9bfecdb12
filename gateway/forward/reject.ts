/** Answers of our own: problem+json with a stable code and the request id (RFC 9457). */
import { STATUS_CODES } from 'node:http'
import { CATALOGUE, type ErrorCode, problem } from '../errors.js'
import type { IncomingBody, IncomingRequest, OutgoingResponse } from '../message.js'
import type { Outcome, Reading, Verdict } from '../types.js'
import { spreadWait } from './spread-wait.js'
import { perText, waitText } from './units.js'

export interface Rejection {
  readonly code: ErrorCode
  readonly requestId: string
  readonly detail?: string | undefined
  /** Further members of the body. */
  readonly members?: Readonly<Record<string, unknown>> | undefined
  /** Flat name, value, … list, rate-limit fields among them. */
  readonly fields?: readonly string[] | undefined
  readonly retryAfter?: number | undefined
}

/**
 * What a refused verdict tells the client: which policies, and when to come back.
 *
 * @param jitter share of the wait by which it may be longer: see spreadWait
 */
export function rejectionOf(verdict: Verdict, requestId: string, jitter = 0): Rejection {
  const refused = verdict.outcomes.filter(({ result }) => result !== 'allowed')
  const unavailable = refused.find(({ result }) => result === 'unavailable')
  if (unavailable !== undefined) return { code: 'limiter-unavailable', requestId }
  const violated = refused.flatMap(({ readings }) => readings.filter(reading => reading.violated))
  const waits = refused.flatMap(({ key, readings }) =>
    readings.flatMap(({ violated, resetMs }) => (violated ? spreadWait(resetMs, key, jitter) : [])),
  )
  // A request that lacks something will lack it later too.
  const retryAfter = waits.length === 0 ? undefined : Math.max(...waits)
  const tryAgain = retryAfter === undefined ? [] : [`Try again in ${waitText(retryAfter)}.`]
  return {
    code: violated.some(({ hidden }) => hidden) ? 'abnormal-usage' : 'quota-exceeded',
    requestId,
    detail: [...refused.map(sentence), ...tryAgain].join(' '),
    retryAfter,
    members: { 'violated-policies': refused.flatMap(policiesOf), retry_after: retryAfter },
  }
}

/** The policies a refused rule names: its violated ones, or the rule itself when there was nothing to count by. */
function policiesOf({ rule, readings }: Outcome): string[] {
  const violated = readings.filter(reading => reading.violated)
  return violated.length === 0 ? [rule.id] : violated.map(({ policy }) => policy)
}

function sentence({ rule, readings }: Outcome): string {
  const violated = readings.filter(reading => reading.violated)
  if (violated.length === 0) return `Rule ${rule.id} counts by something that this request lacks.`
  return violated.map(reading => sentenceOf(rule, reading)).join(' ')
}

function sentenceOf(
  { id, key }: Outcome['rule'],
  { quota, windowMs, calendar, cost = 1, hidden }: Reading,
): string {
  if (hidden) return `Rule ${id} has seen too many requests from this source.`
  if (windowMs !== undefined) {
    const whose = key.includes('client-ip') ? ' from each client address' : ''
    const admits = `Bucket ${id} admits ${quota} request${quota === 1 ? '' : 's'} ${perText(windowMs, calendar)}${whose}`
    if (cost > 1) return `${admits}; this one counts as ${cost}, and fewer are left.`
    return `${admits}, and they are used up.`
  }
  return `Rule ${id} admits ${quota} request${quota === 1 ? '' : 's'} to this resource at a time, and that many are in flight.`
}

/** What `Allow` says of this server. */
export const SERVED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

/** The body of a refused request is read and dropped up to this size, so that the connection can stay open. */
const DRAIN_BYTES = 64 * 1024

function drains(body: IncomingBody | undefined): boolean {
  if (body === undefined || body.complete) return true
  return body.length !== undefined && body.length <= DRAIN_BYTES
}

/** Status and fields of a refusal, but for those that only frame it. */
export function rejectionHead({ code, fields = [], retryAfter }: Rejection): {
  status: number
  fields: string[]
} {
  const entry: { status: number; retryAfter?: number } = CATALOGUE[code]
  const wait = retryAfter ?? entry.retryAfter
  const head = ['Content-Type', 'application/problem+json', 'Cache-Control', 'no-store', ...fields]
  if (wait !== undefined) head.push('Retry-After', String(wait))
  if (code === 'method-not-allowed') head.push('Allow', SERVED_METHODS)
  return { status: entry.status, fields: head }
}

/** Sends a refusal, and closes the connection when too much of the request's body is still to come. */
export function sendRejection(req: IncomingRequest, res: OutgoingResponse, rejection: Rejection): void {
  const { code, requestId, detail, members } = rejection
  const body = JSON.stringify({ ...problem(code, requestId, detail), ...members })
  const { status, fields: head } = rejectionHead(rejection)
  head.push('Content-Length', String(Buffer.byteLength(body)))
  // Where such a message ends, nobody can know (RFC 9112 section 6.3).
  if (code === 'bad-framing' || !drains(req.body)) res.closeAfter()
  res.writeHead(status, STATUS_CODES[status] ?? '', head)
  res.end(req.method === 'HEAD' ? undefined : body)
}
