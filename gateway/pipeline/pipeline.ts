/**
 * The path of a request: listen → identify → match → decide → forward → observe.
 * These modules are passed in as functions; this file only determines their order.
 */
import type { DecideRequest } from '../decide/question.js'
import { GatewayError, SERVED_METHODS } from '../errors.js'
import type { Rejection } from '../forward/reject.js'
import type { Exchange, UpgradeExchange } from '../forward/transport.js'
import type { Peeked } from '../listen/body.js'
import type { IncomingBody, IncomingRequest, OutgoingResponse, RequestHead, Takeover } from '../message.js'
import type { RequestTrace } from '../observe/tracing/tracing.js'
import type { Facts, Finished, Log, Matched, Verdict } from '../types.js'
import type { AnswerSettings } from './answer.js'
import { enter, type Walk } from './enter.js'
import { RequestContext } from './request-context.js'
import { TracedRequestContext } from './traced-request-context.js'

/** Forwards requests and upgrades to one upstream. */
export interface Upstream {
  readonly name: string
  forward(exchange: Exchange): void
  upgrade(exchange: UpgradeExchange): void
}

export interface PipelineParts {
  readonly log: Log
  /** The configuration in force now; read once for each request. */
  readonly walk: Walk
  /** All upstreams that routes refer to, by name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly answers: AnswerSettings
  /** Begins a request's trace; absent if tracing is off. */
  readonly trace?: ((head: RequestHead) => RequestTrace) | undefined
  /** True while this process cannot take more requests. */
  overloaded(): boolean
  readFacts(req: RequestHead): Facts
  /** True when the key of the rule may be in the request body. */
  needsBody(matched: Matched, facts: Facts): boolean
  /** Waits for the first bytes of the body, but not for long; the returned `body` yields all of it. */
  peekBody(body: IncomingBody, facts: Facts): Promise<Peeked>
  /** Reports the first bytes of the body while it streams on. */
  tapBody(body: IncomingBody, onPrefix: (prefix: Buffer) => void): IncomingBody
  decide(request: DecideRequest): Verdict | Promise<Verdict>
  /** The refusal by rules that do not need the body; undefined, without any charge, if they let the request pass. */
  refuseUnread(request: DecideRequest): Verdict | undefined | Promise<Verdict | undefined>
  sendRejection(req: IncomingRequest, res: OutgoingResponse, rejection: Rejection): void
  finished(event: Finished): void
  /** Called once for each request, when its response and the upstream's part have both ended. */
  ended(): void
}

const LATE = new Error('the event loop is delayed by more than listen.maxEventLoopDelay')

export interface Pipeline {
  request(req: IncomingRequest, res: OutgoingResponse): void
  /** `takeOver` hands the connection over; it may be called once. */
  upgrade(req: IncomingRequest, res: OutgoingResponse, takeOver: () => Takeover): void
}

/** The steps of a request, in their order. */
export function createPipeline(parts: PipelineParts): Pipeline {
  return {
    request(req, res) {
      begin(req, res, context => {
        const { facts, matched } = context
        const { body } = req
        const looking = body === undefined ? [] : matched.filter(one => parts.needsBody(one, facts))
        const forward = () => context.forward()
        if (body === undefined || looking.length === 0) judge(context, matched, forward)
        else if (looking.some(({ rule }) => rule.mode === 'enforce')) {
          lookThenJudge(context, body, looking, forward)
        } else judgeThenWatch(context, body, looking, forward)
      })
    },

    upgrade(req, res, takeOver) {
      begin(req, res, context => {
        judge(context, context.matched, () => {
          context.upgrade(takeOver)
        })
      })
    },
  }

  /** Reads the facts, identifies and matches; any error is turned into a response. */
  function begin(req: IncomingRequest, res: OutgoingResponse, go: (context: RequestContext) => void): void {
    const trace = parts.trace?.(req)
    const context =
      trace === undefined
        ? new RequestContext(parts, req, res)
        : new TracedRequestContext(parts, req, res, trace)
    context.attempt(() => {
      if (parts.overloaded()) throw new GatewayError('gateway-overloaded', { cause: LATE })
      const { walk } = parts
      context.revision = walk.policy.revision
      context.facts = parts.readFacts(req)
      const entered = enter(context.facts, walk)
      context.facts = entered.facts
      context.entered(entered)
      if (entered.refused !== undefined) throw entered.refused
      if (entered.asksGateway) answerServerOptions(res, context.answerFields)
      else go(context)
    })
  }

  /** Decides, then forwards or refuses. Returns a promise only if the verdict is asynchronous; it never rejects. */
  function judge(
    context: RequestContext,
    matched: readonly Matched[],
    forward: () => void,
    peeked?: Peeked,
  ): void | Promise<void> {
    const { facts, project, storeCalled } = context
    const startedAt = performance.now()
    const settled = (verdict: Verdict) => settle(context, verdict, startedAt, forward)
    const { prefix: bodyPrefix, isLate: isBodyLate } = peeked ?? {}
    const verdict = parts.decide({ facts, project, matched, bodyPrefix, isBodyLate, storeCalled })
    if (!(verdict instanceof Promise)) return settled(verdict)
    context.judged = verdict.then(settled).catch(error => context.abandon(error))
    return context.judged
  }

  function settle(context: RequestContext, verdict: Verdict, startedAt: number, forward: () => void): void {
    context.judgedAt = performance.now()
    context.limiterUs = Math.round((context.judgedAt - startedAt) * 1000)
    const rejection = context.settle(verdict)
    if (context.res.closed) verdict.release()
    else if (rejection === undefined) forward()
    else context.refuse(rejection)
  }

  /**
   * For an enforced rule with its key in the body: waits for the first bytes of the body, unless the other rules refuse
   * the request anyway.
   */
  function lookThenJudge(
    context: RequestContext,
    body: IncomingBody,
    looking: readonly Matched[],
    forward: () => void,
  ): void {
    const { facts, project, storeCalled } = context
    const startedAt = performance.now()
    const go = (refusal: Verdict | undefined): void | Promise<void> => {
      if (refusal !== undefined) return settle(context, refusal, startedAt, forward)
      return parts.peekBody(body, facts).then(peeked => {
        context.body = peeked.body
        return judge(context, context.matched, forward, peeked)
      })
    }
    const matched = context.matched.filter(one => !looking.includes(one))
    const refusal = parts.refuseUnread({ facts, project, matched, storeCalled })
    if (refusal === undefined || refusal instanceof Promise) {
      context.judged = Promise.resolve(refusal)
        .then(go)
        .catch(error => context.abandon(error))
    } else go(refusal)
  }

  /** For report-only rules with their key in the body: they read it while it streams on, so they delay nothing. */
  function judgeThenWatch(
    context: RequestContext,
    body: IncomingBody,
    looking: readonly Matched[],
    forward: () => void,
  ): void {
    const { facts, project } = context
    const asked = context.matched.filter(one => !looking.includes(one))
    judge(context, asked, () => {
      context.body = parts.tapBody(body, bodyPrefix => {
        context.watch(async () => parts.decide({ facts, project, matched: looking, bodyPrefix }))
      })
      forward()
    })
  }
}

/** Response to an OPTIONS request for the gateway itself. */
export const SERVER_OPTIONS = { status: 204, fields: ['Allow', SERVED_METHODS] }

function answerServerOptions(res: OutgoingResponse, added: readonly string[]): void {
  res.writeHead(SERVER_OPTIONS.status, 'No Content', [...SERVER_OPTIONS.fields, ...added])
  res.end()
}
