/** The gateway's own error responses: problem+json with a stable code and the request id (RFC 9457). */
import { STATUS_CODES } from 'node:http'
import { fractionOf } from '../../config/words/share.js'
import { CATALOGUE, type ErrorCode, problem, SERVED_METHODS } from '../errors.js'
import type { IncomingRequest, OutgoingResponse } from '../message.js'
import type { Calls } from '../types.js'
import type { Verdict } from '../verdict.js'
import { seconds } from './fields.js'
import { grpcStatusFields, isGrpc } from './grpc.js'
import { errorsFor } from './json-rpc.js'
import { neverFits, refusedRule } from './refused-rules.js'
import { waitText } from './units.js'

export interface Rejection {
  readonly code: ErrorCode
  readonly requestId: string
  readonly detail?: string | undefined
  /** The violated policies of a refusal. If set, the body names them, and the wait. */
  readonly policies?: readonly string[] | undefined
  /** Flat name, value, … list, rate-limit fields among them. */
  readonly fields?: readonly string[] | undefined
  readonly retryAfter?: number | undefined
  /** The JSON-RPC calls that it answers. */
  readonly calls?: Calls | undefined
}

/**
 * What a refused verdict tells the client: which policies, and when to come back.
 *
 * @param jitter per cent of the wait by which it may be longer: see spreadWait
 */
export function rejectionOf(verdict: Verdict, requestId: string, jitter = 0): Rejection {
  let detail = ''
  let policies: readonly string[] = []
  let hidden = false
  let retryAfter = 0
  let waitHelps = true
  for (const outcome of verdict.outcomes) {
    if (outcome.result === 'unavailable') return { code: 'limiter-unavailable', requestId }
    if (outcome.result === 'allowed') continue
    const refused = refusedRule(outcome)
    detail += detail === '' ? refused.text : ` ${refused.text}`
    policies = policies.length === 0 ? refused.policies : [...policies, ...refused.policies]
    hidden ||= refused.hidden
    for (const reading of outcome.readings) {
      if (!reading.violated) continue
      if (reading.lifetime || neverFits(outcome.rule, reading)) waitHelps = false
      retryAfter = Math.max(retryAfter, spreadWait(reading.resetMs, outcome.key, jitter))
    }
  }
  const code = hidden ? 'abnormal-usage' : 'quota-exceeded'
  // No wait helps a request that has no key to count by, a batch that never fits, or without credit.
  if (retryAfter === 0 || !waitHelps) return { code, requestId, detail, policies }
  return { code, requestId, detail: `${detail} Try again in ${waitText(retryAfter)}.`, policies, retryAfter }
}

/** Status and fields of a refusal, without the framing. */
export function rejectionHead({ code, fields = [], retryAfter, calls }: Rejection): {
  status: number
  fields: string[]
} {
  const entry: { status: number; retryAfter?: number } = CATALOGUE[code]
  const wait = retryAfter ?? entry.retryAfter
  const head = [...typeField(calls), 'Cache-Control', 'no-store', ...fields]
  if (wait !== undefined) head.push('Retry-After', String(wait))
  if (code === 'method-not-allowed' && !fields.includes('Allow')) head.push('Allow', SERVED_METHODS)
  return { status: entry.status, fields: head }
}

/** Who sends nothing but notifications expects no body. */
function typeField(calls: Calls | undefined): string[] {
  if (calls?.ids === undefined) return ['Content-Type', 'application/problem+json']
  return calls.ids.length === 0 ? [] : ['Content-Type', 'application/json']
}

/**
 * Where the next request begins is unknown with bad framing (RFC 9112 section 6.3), and when the client may keep the body
 * back because of a failed expectation.
 */
const END_IS_UNKNOWN: readonly ErrorCode[] = ['bad-framing', 'expectation-failed']

/** Sends a refusal. The connection decides by itself whether it can read past the rest of the request's body. */
export function sendRejection(req: IncomingRequest, res: OutgoingResponse, rejection: Rejection): void {
  if (END_IS_UNKNOWN.includes(rejection.code)) res.closeAfter()
  if (isGrpc(req)) {
    res.writeHead(200, 'OK', grpcHead(rejection))
    res.end()
    return
  }
  const body = bodyOf(rejection)
  const { status, fields: head } = rejectionHead(rejection)
  head.push('Content-Length', String(Buffer.byteLength(body)))
  res.writeHead(status, STATUS_CODES[status] ?? '', head)
  res.end(req.method === 'HEAD' ? undefined : body)
}

function grpcHead({ code, detail, fields = [], retryAfter }: Rejection): string[] {
  const entry: { detail: string; retryAfter?: number } = CATALOGUE[code]
  return [...grpcStatusFields(code, detail ?? entry.detail, retryAfter ?? entry.retryAfter), ...fields]
}

function bodyOf({ code, requestId, detail: said, policies, retryAfter, calls }: Rejection): string {
  const { type, title, status, detail, instance } = problem(code, requestId, said)
  const retry_after = policies && retryAfter
  // JSON.stringify omits undefined members. It is slow on objects built up step by step, hence one literal.
  const own = { type, title, status, detail, code, instance, 'violated-policies': policies, retry_after }
  return calls?.ids === undefined ? JSON.stringify(own) : errorsFor(calls.ids, calls.isBatch, own)
}

const MOST_ADDED_SECONDS = 60

/**
 * Whole seconds to wait, extended by up to `jitter` per cent and at most a minute; short waits stay
 * as they are. The extension depends on the key alone, so every gateway tells a client the same wait, and
 * asking again does not shorten it.
 */
export function spreadWait(ms: number, key: string, jitter: number): number {
  const wait = seconds(ms)
  if (jitter === 0) return wait
  return wait + Math.round(Math.min((wait * jitter) / 100, MOST_ADDED_SECONDS) * fractionOf(key))
}
