/**
 * How a request ends: the response and the upstream's part each end once, in either order. Slots are released with the
 * upstream's part; the request is recorded with the response, or with the tunnel if the connection became one.
 */

import type { AnswerFields } from '../demand.js'
import type { Finished, Judgement, Verdict } from '../verdict.js'
import { judgementWith } from './access.js'
import type { PipelineParts } from './parts.js'
import type { RequestContext } from './request-context.js'

type EndParts = Pick<PipelineParts, 'finished' | 'ended'>

/** Of a response that no upstream gave. */
export const NO_FIELDS: AnswerFields = { get: () => undefined }

/** Passes the head of the upstream's response to the rules that are charged by it. */
export function upstreamAnswered(context: RequestContext, status: number, fields: AnswerFields): void {
  if (status === 101) context.verdict?.upgraded()
  context.verdict?.answered(status, fields)
  context.beside?.then(verdict => verdict.answered(status, fields)).catch(() => {})
}

/** The upstream's part has ended, or will not begin: releases every slot. Further calls have no effect. */
export function upstreamEnded(context: RequestContext, parts: EndParts): void {
  const { upstreamPart, tunnel } = context
  if (upstreamPart === 'ended') return
  context.trace?.forwarded()
  context.upstreamPart = 'ended'
  // A client that leaves before the response has still used the upstream.
  if (upstreamPart === 'running' && context.res.closed) upstreamAnswered(context, 0, NO_FIELDS)
  if (context.verdict !== undefined) endVerdict(context, context.verdict)
  context.beside?.then(verdict => endVerdict(context, verdict)).catch(() => {})
  if (upstreamPart === 'ahead') return
  if (tunnel !== undefined) responseEnded(context, parts)
  else if (context.isRecorded) parts.ended()
}

/** Settles what the request has reserved, and releases its slots. */
export function endVerdict({ isSent, tail }: RequestContext, verdict: Verdict): void {
  if (isSent) verdict.ended(tail)
  verdict.release()
}

/**
 * Records the request. Synchronously if there is nothing to wait for: objects held by a promise would survive a
 * young-generation GC.
 */
export function responseEnded(context: RequestContext, parts: EndParts): void {
  const { verdict, judged, beside, messages } = context
  const nothingToAwait = (judged ?? beside ?? verdict?.settled ?? messages?.settled) === undefined
  if (nothingToAwait) record(context, verdict, parts)
  else completeVerdict(context).then(complete => record(context, complete, parts))
}

/** The verdict after every rule has been counted, including those that run beside the request. */
async function completeVerdict(context: RequestContext): Promise<Judgement | undefined> {
  await context.judged
  const beside = await context.beside?.catch(() => undefined)
  const { verdict } = context
  await Promise.all([verdict?.settled, beside?.settled, context.messages?.settled])
  if (verdict === undefined || beside === undefined) return verdict
  const { allowed, outcomes, reportOnly, unlimited } = verdict
  return { allowed, outcomes, unlimited, reportOnly: reportOnly.concat(beside.reportOnly) }
}

function record(context: RequestContext, verdict: Judgement | undefined, parts: EndParts): void {
  const event = finishedOf(context, verdict)
  parts.finished(event)
  context.trace?.finished(event)
  context.isRecorded = true
  if (context.upstreamPart !== 'running') parts.ended()
}

function messagesIn({ messages }: RequestContext): Pick<Finished, 'messages'> {
  return messages === undefined || messages.totals.length === 0 ? {} : { messages: messages.totals }
}

function finishedOf(context: RequestContext, verdict: Judgement | undefined): Finished {
  const { req, res, facts, entered, tunnel } = context
  const project = entered?.project
  return {
    id: req.id,
    method: req.method,
    facts,
    project,
    credential: entered?.caller?.credential,
    credentialFault: entered?.caller?.wrong?.reason,
    identifier: entered?.caller?.identifier,
    upstream: context.upstream?.name ?? '',
    address: context.address,
    verdict: judgementWith(entered?.ruling, verdict, { facts, project }),
    ...messagesIn(context),
    revision: context.revision,
    status: tunnel === undefined ? (context.refusedAs ?? res.status) : 101,
    source: context.source,
    error: context.error,
    cause: context.cause,
    bytesIn: tunnel?.read ?? req.body?.received ?? 0,
    bytesOut: tunnel?.written ?? res.sent,
    startedAt: context.startedAt,
    durationMs: performance.now() - context.arrivedAt,
    upstreamMs: context.upstreamMs,
    waitedMs: context.verdict?.waitedMs,
    limiterUs: context.limiterUs,
  }
}
