/**
 * The path of a request, from top to bottom: listen → identify → match → decide → forward or refuse → observe. The rooms
 * are passed in as functions; this file only determines their order.
 */
import { STATUS_CODES } from 'node:http'
import type { DecideRequest } from '../decide/question.js'
import { CATALOGUE, type ErrorCode, GatewayError } from '../errors.js'
import type { Rejection } from '../forward/reject.js'
import type { Peeked } from '../listen/peek-body.js'
import type {
  IncomingBody,
  IncomingRequest,
  OutgoingResponse,
  ResponseWatcher,
  Takeover,
} from '../message.js'
import type { RouteAnswer } from '../route.js'
import type { Facts, Matched } from '../types.js'
import type { Verdict } from '../verdict.js'
import { answer, OPTIONS_ANSWER, refusal } from './answer.js'
import { endVerdict, NO_FIELDS, responseEnded, upstreamAnswered, upstreamEnded } from './end.js'
import { type Entered, enter, isRouted, type Routed } from './enter.js'
import { ANSWER_CUT, UpstreamExchange } from './exchange.js'
import type { CountingGate, PipelineParts } from './parts.js'
import { PassedBytes, RequestContext } from './request-context.js'
import { ownFields, routeFieldsOf } from './route-fields.js'

export interface Pipeline {
  request(req: IncomingRequest, res: OutgoingResponse): void
  /** `takeOver` hands the connection over; it may be called once. */
  upgrade(req: IncomingRequest, res: OutgoingResponse, takeOver: () => Takeover): void
}

export function createPipeline(parts: PipelineParts): Pipeline {
  const begin = (req: IncomingRequest, res: OutgoingResponse, takeOver?: () => Takeover) =>
    new PipelineRequest(parts, new RequestContext(req, res, parts.trace?.(req)), takeOver).begin()
  return { request: begin, upgrade: begin }
}

/** Refusals of a request that may have a wrong credential; where another could not be checked, guesses count too. */
const GUESSED: readonly ErrorCode[] = ['credential-invalid', 'credential-unchecked']
const LATE = new Error('the event loop is delayed by more than listen.maxEventLoopDelay')

/** The steps of one request, in their order. */
class PipelineRequest implements ResponseWatcher {
  readonly #parts: PipelineParts
  readonly #context: RequestContext
  readonly #takeOver: (() => Takeover) | undefined

  constructor(parts: PipelineParts, context: RequestContext, takeOver: (() => Takeover) | undefined) {
    this.#parts = parts
    this.#context = context
    this.#takeOver = takeOver
    context.res.watch(this)
  }

  /** Reads the facts, identifies, routes and matches; any error becomes a response. */
  begin(): void {
    const context = this.#context
    const { overloaded, readFacts, walk } = this.#parts
    try {
      if (overloaded()) throw new GatewayError('gateway-overloaded', { cause: LATE })
      context.revision = walk.policy.revision
      context.facts = readFacts(context.req)
      const entered = enter(context.facts, walk)
      if (entered instanceof Promise) this.#await(entered.then(late => this.#enter(late)))
      else this.#enter(entered)
    } catch (error) {
      this.#abandon(error)
    }
  }

  /** Who is calling is known, and whether the request may go on. */
  #enter(entered: Entered): void | Promise<void> {
    const context = this.#context
    context.facts = entered.facts
    context.entered = entered
    context.routeFields = routeFieldsOf(entered)
    if (entered.upstream !== undefined) context.upstream = this.#parts.upstreams.get(entered.upstream)
    const { refused, caller } = entered
    const isGuess = refused !== undefined && GUESSED.includes(refused.code) && caller?.guess !== undefined
    if (isGuess) return this.#refuseGuess(entered.facts, caller.guess, refused)
    if (refused !== undefined) throw refused
    if (isRouted(entered)) return this.#decide(entered)
    if (entered.route?.isPreflight && entered.route.answer !== undefined)
      this.#answer(entered, entered.route.answer)
    else this.#answerServerOptions()
  }

  /** A sender of many wrong credentials has to wait; the right one is always accepted. */
  #refuseGuess(facts: Facts, guess: string, refused: GatewayError): Promise<void> {
    return this.#await(
      this.#parts.countWrongCredential(facts.client, guess).then(retryAfter => {
        if (retryAfter === undefined) throw refused
        this.#refuse({ code: 'wrong-credentials', requestId: facts.id, retryAfter })
      }),
    )
  }

  /** A step that has to wait for somebody: the request is recorded only after it. */
  #await(step: Promise<void>): Promise<void> {
    const awaited = step.catch(error => this.#abandon(error))
    this.#context.judged = awaited
    return awaited
  }

  /** Asks the rules at once, unless the key of one of them may be in the body. */
  #decide(routed: Routed): void | Promise<void> {
    const { facts, matched } = routed
    const context = this.#context
    const { body } = context.req
    const isUpgrade = this.#takeOver !== undefined
    const looking =
      body === undefined || isUpgrade ? [] : matched.filter(one => this.#parts.needsBody(one, facts))
    if (body === undefined || looking.length === 0) return this.#judge(routed, matched)
    if (looking.some(({ rule }) => rule.mode === 'enforce')) return this.#lookThenJudge(routed, body, looking)
    context.observing = looking
    const others = matched.filter(one => !looking.includes(one))
    return this.#judge(routed, others)
  }

  /**
   * For an enforced rule with its key in the body: waits for the first bytes of the body, unless the other rules refuse
   * the request anyway.
   */
  #lookThenJudge(routed: Routed, body: IncomingBody, looking: readonly Matched[]): void | Promise<void> {
    const { facts, project, matched } = routed
    const context = this.#context
    const startedAt = performance.now()
    const others = matched.filter(one => !looking.includes(one))
    const go = (refused: Verdict | undefined): void | Promise<void> => {
      if (refused !== undefined) return this.#settle(routed, refused, startedAt)
      return this.#peek(routed, body).then(peeked => this.#judge(routed, matched, peeked))
    }
    const refused = this.#parts.refuseUnread({
      facts,
      project,
      matched: others,
      storeCalled: storeCalled(context),
    })
    if (refused !== undefined && !(refused instanceof Promise)) return go(refused)
    return this.#await(Promise.resolve(refused).then(go))
  }

  /** Waits for the first bytes of the body, and for the calls in them if an enforced rule counts by those. */
  async #peek({ facts, matched }: Routed, body: IncomingBody): Promise<Peeked> {
    const context = this.#context
    const peeked = await this.#parts.peekBody(body, facts)
    context.body = peeked.body
    if (this.#parts.answersCalls(matched)) {
      context.calls = this.#parts.callsIn(facts, peeked.prefix, peeked.isLate)
    }
    return peeked
  }

  /** Decides, then forwards or refuses. Returns a promise only if the verdict is asynchronous; it never rejects. */
  #judge(routed: Routed, matched: readonly Matched[], peeked?: Peeked): void | Promise<void> {
    const { facts, project } = routed
    const context = this.#context
    const startedAt = performance.now()
    const verdict = this.#parts.decide({
      facts,
      project,
      matched,
      bodyPrefix: peeked?.prefix,
      isBodyLate: peeked?.isLate,
      calls: context.calls,
      client: context.res,
      waits: () => this.#readAhead(facts),
      storeCalled: storeCalled(context),
    })
    if (!(verdict instanceof Promise)) return this.#settle(routed, verdict, startedAt)
    return this.#await(verdict.then(settled => this.#settle(routed, settled, startedAt)))
  }

  /** While a request waits, so that a client of HTTP/1.1 that leaves is noticed although it has sent a body. */
  #readAhead(facts: Facts): void {
    const context = this.#context
    const { body, fields } = context.req
    const isUnread = body !== undefined && context.body === undefined && this.#takeOver === undefined
    // A client that waits for `100 Continue` has sent nothing yet.
    if (!isUnread || fields.get('expect') !== undefined) return
    context.body = this.#parts.readAhead(body, facts)
    context.isReadAhead = true
  }

  /** Takes the verdict, with which the request may hold slots. */
  #settle(routed: Routed, verdict: Verdict, startedAt: number): void | Promise<void> {
    const { facts, ruling } = routed
    const context = this.#context
    context.judgedAt = performance.now()
    context.limiterUs = Math.round((context.judgedAt - startedAt - (verdict.waitedMs ?? 0)) * 1000)
    context.trace?.decided(startedAt, context.judgedAt, verdict)
    context.verdict = verdict
    context.judged = undefined
    const { answers } = this.#parts
    const { fields, removed, rejection } = answer(verdict, facts, answers, ruling, context.routeFields)
    context.answerFields = fields
    context.removedFields = removed
    if (context.res.closed) verdict.release()
    else if (rejection !== undefined) return this.#refuseCalls(routed, rejection)
    else if (routed.route.answer?.body === 'own-quota') this.#answerQuota(routed, routed.route.answer)
    else if (routed.route.answer !== undefined) this.#answer(routed, routed.route.answer)
    else this.#forward(routed)
  }

  /** The caller's own windows. Their counters are only read. */
  #answerQuota(routed: Routed, given: RouteAnswer): void {
    // Refuses other methods before anything is read.
    given.fieldsFor(routed.facts, routed.project)
    this.#await(
      this.#parts.quotaOf(routed).then(quota => {
        const body = Buffer.from(JSON.stringify(quota))
        if (!this.#context.res.closed) this.#answer(routed, { ...given, body })
      }),
    )
  }

  /** What answers a JSON-RPC call has its id, which is in the body: so that is read first, if it has not been. */
  #refuseCalls(routed: Routed, rejection: Rejection): void | Promise<void> {
    const context = this.#context
    const body = context.body ?? context.req.body
    const isUnread = body !== undefined && (context.body === undefined || context.isReadAhead)
    if (!isUnread || this.#takeOver !== undefined || !this.#parts.answersCalls(routed.matched))
      return this.#refuse(rejection)
    return this.#await(this.#peek(routed, body).then(() => this.#refuse(rejection)))
  }

  /** The route says what to answer. */
  #answer({ facts, project }: Entered, given: RouteAnswer): void {
    const context = this.#context
    const { req, res, answerFields, routeFields } = context
    const { status, body } = given
    const fields = ownFields(given.fieldsFor(facts, project), routeFields)
    if (body.length > 0 || status !== 204) fields.push('Content-Length', String(body.length))
    upstreamAnswered(context, status, NO_FIELDS)
    upstreamEnded(context, this.#parts)
    res.writeHead(status, STATUS_CODES[status] ?? '', [...fields, ...answerFields])
    res.end(req.method === 'HEAD' ? undefined : body)
  }

  /** From here on the response is the upstream's, unless that fails. */
  #forward(routed: Routed): void {
    const context = this.#context
    const { trace, upstream } = context
    if (upstream === undefined) throw new Error(`there is no upstream "${routed.upstream}"`)
    if (trace !== undefined) context.req = { ...context.req, fields: trace.forward(context.req.fields) }
    if (context.observing.length > 0) this.#observeBody(routed)
    context.upstreamPart = 'running'
    context.tail = this.#parts.answerTail(routed.matched)
    if (this.#takeOver !== undefined) context.messages = this.#messagesOf(routed)
    const exchange = new UpstreamExchange(context, routed, this.#parts, (rejection, cause) =>
      this.#refuse(rejection, cause),
    )
    const takeOver = this.#takeOver
    if (takeOver === undefined) {
      context.source = 'upstream'
      upstream.forward(exchange)
      return
    }
    upstream.upgrade(exchange, () => {
      const takeover = takeOver()
      context.tunnel = new PassedBytes(takeover)
      return takeover
    })
  }

  /** Undefined if no rule counts messages: then nobody looks at them. */
  #messagesOf({ facts, project, matched: all }: Routed): CountingGate | undefined {
    const matched = all.filter(({ rule }) => rule.countsMessages)
    return matched.length === 0 ? undefined : this.#parts.messagesOf({ facts, project, matched })
  }

  /** For report-only rules with their key in the body: they read it while it streams on, so they delay nothing. */
  #observeBody({ facts, project }: Routed): void {
    const context = this.#context
    const { observing: matched, req } = context
    const body = context.body ?? req.body
    if (body === undefined) return
    context.body = this.#parts.tapBody(body, bodyPrefix => {
      const { callsIn, countsCalls, decide: judge } = this.#parts
      const calls = matched.some(countsCalls) ? callsIn(facts, bodyPrefix, false) : undefined
      const decide = async () => judge({ facts, project, matched, bodyPrefix, calls })
      context.beside = decide().then(verdict => {
        if (context.upstreamPart === 'ended') endVerdict(context, verdict)
        return verdict
      })
      context.beside.catch(error => this.#parts.log.error({ err: error, id: req.id }, 'report-only'))
    })
  }

  #refuse(rejection: Rejection, cause?: string): void {
    const context = this.#context
    const { req, res, facts } = context
    upstreamEnded(context, this.#parts)
    if (res.closed) return
    context.cause = cause
    if (res.status !== 0) {
      context.error = ANSWER_CUT
      res.cut()
      return
    }
    context.source = 'gateway'
    context.error = rejection.code
    context.refusedAs = CATALOGUE[rejection.code].status
    const { answers, sendRejection } = this.#parts
    const { answerFields, routeFields, calls } = context
    const answering = calls === undefined ? rejection : { ...rejection, calls }
    sendRejection(req, res, refusal(answering, facts, answers, answerFields, routeFields))
  }

  /** Ends a request that failed: with the error from the catalogue, or with a logged internal error. */
  #abandon(error: unknown): void {
    const { req, res } = this.#context
    if (error instanceof GatewayError) {
      const cause = error.cause instanceof Error ? error.cause.message : undefined
      const { code, message: detail, fields } = error
      this.#refuse({ code, requestId: req.id, detail, fields }, cause)
      return
    }
    if (!res.closed) this.#parts.log.error({ err: error, id: req.id }, 'request failed')
    this.#refuse({ code: 'internal', requestId: req.id }, (error as Error | undefined)?.message)
  }

  #answerServerOptions(): void {
    const { res, answerFields } = this.#context
    res.writeHead(OPTIONS_ANSWER.status, 'No Content', [...OPTIONS_ANSWER.fields, ...answerFields])
    res.end()
  }

  /** The response has been sent, or the client has left. */
  onClose(refused?: ErrorCode): void {
    const context = this.#context
    if (context.tunnel !== undefined) return
    if (refused !== undefined) {
      context.source = 'gateway'
      context.error = refused
    }
    responseEnded(context, this.#parts)
  }
}

/** Reports calls to the counter store, if the request is traced. */
function storeCalled({ trace }: RequestContext): DecideRequest['storeCalled'] {
  return trace && ((startedAt, remote) => trace.storeCalled(startedAt, performance.now(), remote))
}
