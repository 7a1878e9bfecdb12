/**
 * The path of a request: listen → identify → match → decide → forward → observe.
 * The rooms are handed in as functions; this file only says in which order they are entered.
 */
import type { DecideRequest } from '../decide/question.js'
import { GatewayError } from '../errors.js'
import { type Rejection, SERVED_METHODS } from '../forward/reject.js'
import type { Exchange, UpgradeExchange } from '../forward/transport.js'
import type { IncomingBody, IncomingRequest, OutgoingResponse, RequestHead, Takeover } from '../message.js'
import type { RequestTrace } from '../observe/tracing/tracing.js'
import type { Facts, Finished, Log, Matched, Verdict } from '../types.js'
import type { AnswerSettings } from './answer.js'
import { enter, type Walk } from './enter.js'
import { Passage } from './passage.js'
import { TracedPassage } from './traced-passage.js'

/** A way to one upstream, for requests and for upgrades. */
export interface Upstream {
  readonly name: string
  forward(exchange: Exchange): void
  upgrade(exchange: UpgradeExchange): void
}

export interface Rooms {
  readonly log: Log
  /** What is in force now: asked once for each request. */
  readonly walk: Walk
  /** By name; all that are routed to. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly answers: AnswerSettings
  /** Begins a request's trace; absent where there are none. */
  readonly trace?: ((head: RequestHead) => RequestTrace) | undefined
  /** True while this process can take nothing more on. */
  overloaded(): boolean
  readFacts(req: RequestHead): Facts
  /** True when a rule's key may stand in the request's body. */
  needsBody(matched: Matched, facts: Facts): boolean
  /** The first bytes of the body, waited for; `body` then yields all of it. */
  peekBody(body: IncomingBody): Promise<{ prefix: Buffer; body: IncomingBody }>
  /** The first bytes of the body, reported while it streams on. */
  tapBody(body: IncomingBody, onPrefix: (prefix: Buffer) => void): IncomingBody
  decide(request: DecideRequest): Verdict | Promise<Verdict>
  sendRejection(req: IncomingRequest, res: OutgoingResponse, rejection: Rejection): void
  finished(event: Finished): void
  /** Called once for each request, when its answer and the upstream's work for it have both ended. */
  ended(): void
}

const LATE = new Error('the event loop is delayed by more than listen.maxEventLoopDelay')

export interface Pipeline {
  request(req: IncomingRequest, res: OutgoingResponse): void
  /** `takeOver` hands the connection over, once and for good. */
  upgrade(req: IncomingRequest, res: OutgoingResponse, takeOver: () => Takeover): void
}

export function createPipeline(rooms: Rooms): Pipeline {
  return {
    request(req, res) {
      begin(req, res, passage => {
        const { facts, matched } = passage
        const { body } = req
        const looking = body === undefined ? [] : matched.filter(one => rooms.needsBody(one, facts))
        const forward = () => passage.forward()
        if (body === undefined || looking.length === 0) judge(passage, matched, forward)
        else if (looking.some(({ rule }) => rule.mode === 'enforce')) lookThenJudge(passage, body, forward)
        else judgeThenWatch(passage, body, looking, forward)
      })
    },

    upgrade(req, res, takeOver) {
      begin(req, res, passage => {
        judge(passage, passage.matched, () => {
          passage.upgrade(takeOver)
        })
      })
    },
  }

  /** Listen, identify and match; whatever goes wrong in there is answered. */
  function begin(req: IncomingRequest, res: OutgoingResponse, go: (passage: Passage) => void): void {
    const trace = rooms.trace?.(req)
    const passage =
      trace === undefined ? new Passage(rooms, req, res) : new TracedPassage(rooms, req, res, trace)
    passage.attempt(() => {
      if (rooms.overloaded()) throw new GatewayError('gateway-overloaded', { cause: LATE })
      const { walk } = rooms
      passage.revision = walk.policy.revision
      passage.facts = rooms.readFacts(req)
      const entered = enter(passage.facts, walk)
      passage.facts = entered.facts
      passage.entered(entered)
      if (entered.refused !== undefined) throw entered.refused
      if (entered.asksGateway) answerServerOptions(res, passage.answerFields)
      else go(passage)
    })
  }

  /** Decide, then forward or refuse. A promise only when the verdict is waited for; it never rejects. */
  function judge(
    passage: Passage,
    matched: readonly Matched[],
    forward: () => void,
    bodyPrefix?: Buffer,
  ): void | Promise<void> {
    const { facts, project, storeCalled } = passage
    const startedAt = performance.now()
    const settle = (verdict: Verdict): void => {
      passage.judgedAt = performance.now()
      passage.limiterUs = Math.round((passage.judgedAt - startedAt) * 1000)
      const rejection = passage.settle(verdict)
      if (passage.res.closed) verdict.release()
      else if (rejection === undefined) forward()
      else passage.refuse(rejection)
    }
    const verdict = rooms.decide({ facts, project, matched, bodyPrefix, storeCalled })
    if (!(verdict instanceof Promise)) return settle(verdict)
    passage.judged = verdict.then(settle).catch(error => passage.abandon(error))
    return passage.judged
  }

  /** An enforced rule whose key stands in the body: its first bytes are waited for. */
  function lookThenJudge(passage: Passage, body: IncomingBody, forward: () => void): void {
    passage.judged = rooms
      .peekBody(body)
      .then(({ prefix, body }) => {
        passage.body = body
        return judge(passage, passage.matched, forward, prefix)
      })
      .catch(error => passage.abandon(error))
  }

  /** Report-only rules that look into the body do so while it streams on: they may not delay anything. */
  function judgeThenWatch(
    passage: Passage,
    body: IncomingBody,
    looking: readonly Matched[],
    forward: () => void,
  ): void {
    const { facts, project } = passage
    const asked = passage.matched.filter(one => !looking.includes(one))
    judge(passage, asked, () => {
      passage.body = rooms.tapBody(body, bodyPrefix => {
        passage.watch(async () => rooms.decide({ facts, project, matched: looking, bodyPrefix }))
      })
      forward()
    })
  }
}

/** To OPTIONS that asks the gateway itself. */
export const SERVER_OPTIONS = { status: 204, fields: ['Allow', SERVED_METHODS] }

function answerServerOptions(res: OutgoingResponse, added: readonly string[]): void {
  res.writeHead(SERVER_OPTIONS.status, 'No Content', [...SERVER_OPTIONS.fields, ...added])
  res.end()
}
