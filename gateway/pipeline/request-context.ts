/** One request on its way through the gateway: what is known about it, what it holds, and how it ends. */
import type { DecideRequest } from '../decide/question.js'
import { type ErrorCode, GatewayError } from '../errors.js'
import type { Rejection } from '../forward/reject.js'
import type { Exchange } from '../forward/transport.js'
import type {
  Fields,
  IncomingBody,
  IncomingRequest,
  OutgoingResponse,
  ResponseWatcher,
  Takeover,
} from '../message.js'
import type { Ruling } from '../policy/access.js'
import type {
  AnswerFields,
  AnswerSource,
  Facts,
  Finished,
  Judgement,
  Matched,
  Project,
  Verdict,
} from '../types.js'
import { judgementWith } from './access.js'
import { answer, answerFieldsOf, refusal } from './answer.js'
import type { Entered } from './enter.js'
import { PassedBytes } from './passed-bytes.js'
import type { PipelineParts, Upstream } from './pipeline.js'

/** The response was cut after it had begun, by the upstream or by the gateway. */
const ANSWER_CUT = 'answer-cut'
const NO_FIELDS: AnswerFields = { get: () => undefined }

export class RequestContext implements Exchange, ResponseWatcher {
  req: IncomingRequest
  readonly res: OutgoingResponse
  revision = ''
  matched: readonly Matched[] = []
  limiterUs = 0
  /** Reports calls to the counter store, if the request is traced. */
  readonly storeCalled: DecideRequest['storeCalled']
  body: IncomingBody | undefined
  answerFields: readonly string[]
  /** Time of the verdict. */
  judgedAt = 0
  removedFields: readonly string[] | undefined
  /** Pending verdict. A client may leave before it, but the request is still charged and must be recorded. */
  judged: Promise<void> | undefined
  readonly #parts: PipelineParts
  readonly #startedAt = Date.now()
  readonly #start = performance.now()
  #source: AnswerSource = 'gateway'
  #error: string | undefined
  #cause: string | undefined
  #address = ''
  #upstreamMs: number | undefined
  #facts: Facts | undefined
  #project: Project | undefined
  #upstream: Upstream | undefined
  #ruling: Ruling | undefined
  #verdict: Verdict | undefined
  #beside: Promise<Verdict> | undefined
  #ended = false
  /** Parts that have not ended yet: the response, and the upstream's part once that has begun. */
  #pending = 1
  #working = false
  /** Set once the connection was taken over for a WebSocket; the request then ends with the tunnel. */
  #tunnel: PassedBytes | undefined

  constructor(parts: PipelineParts, req: IncomingRequest, res: OutgoingResponse) {
    this.#parts = parts
    this.req = req
    this.res = res
    this.answerFields = answerFieldsOf(req.id)
    res.watch(this)
  }

  /** The response has been sent, or the client has left. */
  onClose(refused?: ErrorCode): void {
    if (this.#tunnel !== undefined) return
    if (refused !== undefined) {
      this.#source = 'gateway'
      this.#error = refused
    }
    this.#finish()
  }

  /** Takes over the result of `enter`, which may be a refusal. */
  entered({ facts, project, upstream, matched, ruling }: Entered): void {
    this.#facts = facts
    this.#project = project
    this.#upstream = upstream === undefined ? undefined : this.#parts.upstreams.get(upstream)
    this.matched = matched
    this.#ruling = ruling
  }

  get facts(): Facts {
    return this.#facts as Facts
  }
  set facts(facts: Facts) {
    this.#facts = facts
  }
  get project(): Project {
    return this.#project as Project
  }
  get upstream(): Upstream {
    return this.#upstream as Upstream
  }

  /** True while a slot is held; `maxHold` may release it before the request ends. */
  get keepUpstream(): boolean {
    return this.#verdict?.holdsSlot ?? false
  }

  /** Runs a step, and turns an exception into an error response. */
  attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.abandon(error)
    }
  }

  /** Takes the verdict, with which the request may hold slots. Returns the refusal that follows from it, if any. */
  settle(verdict: Verdict): Rejection | undefined {
    this.#verdict = verdict
    this.judged = undefined
    const { fields, removed, rejection } = answer(verdict, this.facts, this.#parts.answers, this.#ruling)
    this.answerFields = fields
    this.removedFields = removed
    return rejection
  }

  /** Forwards the request: from here on the response is the upstream's, unless that fails. */
  forward(): void {
    this.#source = 'upstream'
    this.#work()
    this.upstream.forward(this)
  }

  upgrade(takeOver: () => Takeover): void {
    this.#work()
    const switchOver = (): Takeover => {
      const takeover = takeOver()
      this.#tunnel = new PassedBytes(takeover)
      return takeover
    }
    this.upstream.upgrade(Object.assign(this, { takeOver: switchOver }))
  }

  /** Asks report-only rules while the request is already being forwarded. */
  watch(decide: () => Promise<Verdict>): void {
    this.#beside = decide().then(verdict => {
      if (this.#ended) verdict.release()
      return verdict
    })
    this.#beside.catch(error => this.#parts.log.error({ err: error, id: this.req.id }, 'report-only'))
  }

  /** The upstream's part has ended, or will not begin: releases every slot. */
  onUpstreamEnd(): void {
    this.#ended = true
    // A client that leaves before the response has still used the upstream.
    if (this.#working && this.res.closed) this.#answered(0, NO_FIELDS)
    this.#verdict?.release()
    this.#beside?.then(verdict => verdict.release()).catch(() => {})
    if (!this.#working) return
    this.#working = false
    if (this.#tunnel !== undefined) this.#finish()
    this.#end()
  }

  onAttempt(address: string): void {
    this.#address = address
  }

  /** The head of the upstream's response has arrived. */
  onAnswer(status: number, fields: Fields): void {
    if (status === 101) this.#verdict?.upgraded()
    this.#source = 'upstream'
    this.#upstreamMs = performance.now() - this.judgedAt
    this.#answered(status, fields)
  }

  #answered(status: number, fields: AnswerFields): void {
    this.#verdict?.answered(status, fields)
    this.#beside?.then(verdict => verdict.answered(status, fields)).catch(() => {})
  }

  fail(code: ErrorCode, cause?: string): void {
    if (this.#address !== '') this.#upstreamMs ??= performance.now() - this.judgedAt
    this.refuse({ code, requestId: this.req.id }, cause)
  }

  onCut(cause: string): void {
    this.#error = ANSWER_CUT
    this.#cause = cause
  }

  refuse(rejection: Rejection, cause?: string): void {
    this.onUpstreamEnd()
    if (this.res.closed) return
    this.#cause = cause
    if (this.res.status !== 0) {
      this.#error = ANSWER_CUT
      this.res.cut()
      return
    }
    this.#source = 'gateway'
    this.#error = rejection.code
    const { answers, sendRejection } = this.#parts
    sendRejection(this.req, this.res, refusal(rejection, this.#facts, answers, this.answerFields))
  }

  /** Ends a request that failed: with the error from the catalogue, or with a logged internal error. */
  abandon(error: unknown): void {
    const requestId = this.req.id
    if (error instanceof GatewayError) {
      const cause = error.cause instanceof Error ? error.cause.message : undefined
      this.refuse({ code: error.code, requestId, detail: error.message }, cause)
      return
    }
    if (!this.res.closed) this.#parts.log.error({ err: error, id: requestId }, 'request failed')
    this.refuse({ code: 'internal', requestId }, (error as Error | undefined)?.message)
  }

  #work(): void {
    this.#working = true
    this.#pending += 1
  }

  #end(): void {
    this.#pending -= 1
    if (this.#pending === 0) this.#parts.ended()
  }

  /**
   * Reports synchronously if there is nothing to wait for: objects held by a promise would survive a
   * young-generation GC.
   */
  #finish(): void {
    const verdict = this.#verdict
    const nothingToAwait = (this.judged ?? this.#beside ?? verdict?.settled) === undefined
    if (nothingToAwait) this.#record(verdict)
    else this.#completeVerdict().then(complete => this.#record(complete))
  }

  /** The verdict after every rule has been counted, including those that run beside the request. */
  async #completeVerdict(): Promise<Judgement | undefined> {
    await this.judged
    const beside = await this.#beside?.catch(() => undefined)
    const verdict = this.#verdict
    await Promise.all([verdict?.settled, beside?.settled])
    if (verdict === undefined || beside === undefined) return verdict
    const { allowed, outcomes, reportOnly } = verdict
    return { allowed, outcomes, reportOnly: reportOnly.concat(beside.reportOnly) }
  }

  #record(verdict: Judgement | undefined): void {
    const { res, req } = this
    this.record({
      id: req.id,
      method: req.method,
      facts: this.#facts,
      project: this.#project,
      upstream: this.#upstream?.name ?? '',
      address: this.#address,
      verdict: judgementWith(this.#ruling, verdict, { facts: this.#facts, project: this.#project }),
      revision: this.revision,
      status: this.#tunnel === undefined ? res.status : 101,
      source: this.#source,
      error: this.#error,
      cause: this.#cause,
      bytesIn: this.#tunnel?.read ?? req.body?.received ?? 0,
      bytesOut: this.#tunnel?.written ?? res.sent,
      startedAt: this.#startedAt,
      durationMs: performance.now() - this.#start,
      upstreamMs: this.#upstreamMs,
      limiterUs: this.limiterUs,
    })
    this.#end()
  }
  /** Called when the request has ended and everything about it is known. */
  protected record(event: Finished): void {
    this.#parts.finished(event)
  }
}
