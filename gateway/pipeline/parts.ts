/** What the pipeline calls: the rooms, as functions, and the upstreams. */
import type { DecideRequest } from '../decide/question.js'
import type { Rejection } from '../forward/reject.js'
import type { Exchange } from '../forward/transport.js'
import type { Peeked } from '../listen/peek-body.js'
import type { IncomingBody, IncomingRequest, OutgoingResponse, RequestHead, Takeover } from '../message.js'
import type { RequestTrace } from '../observe/tracing/tracing.js'
import type { Calls, Facts, Log, Matched } from '../types.js'
import type { AnswerTail, Finished, MessageGate, MessageTotals, Verdict } from '../verdict.js'
import type { AnswerSettings } from './answer.js'
import type { Routed, Walk } from './enter.js'

/** Forwards requests and upgrades to one upstream. */
export interface Upstream {
  readonly name: string
  forward(exchange: Exchange): void
  /** `takeOver` hands the client's connection over, once the upstream has switched. */
  upgrade(exchange: Exchange, takeOver: () => Takeover): void
}

/** The messages of one WebSocket, as they are counted. */
export interface CountingGate extends MessageGate {
  readonly totals: readonly MessageTotals[]
  /** Resolves when report-only rules have counted every message; undefined if they have. Never rejects. */
  readonly settled: Promise<void> | undefined
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
  /** True when the rule counts the JSON-RPC calls in the body. */
  countsCalls(matched: Matched): boolean
  /** True when refusals answer the JSON-RPC calls in the body. */
  answersCalls(matched: readonly Matched[]): boolean
  /** The JSON-RPC calls in a body, of which `prefix` is the beginning. */
  callsIn(facts: Facts, prefix: Buffer, isLate: boolean): Calls
  /** Watches the end of the response, if a rule settles by it. */
  answerTail(matched: readonly Matched[]): AnswerTail | undefined
  /** Waits for the first bytes of the body, but not for long; the returned `body` yields all of it. */
  peekBody(body: IncomingBody, facts: Facts): Promise<Peeked>
  /** Reads a body for which nobody asks yet, so that its client is seen to leave. */
  readAhead(body: IncomingBody, facts: Facts): IncomingBody
  /** Reports the first bytes of the body while it streams on. */
  tapBody(body: IncomingBody, onPrefix: (prefix: Buffer) => void): IncomingBody
  decide(request: DecideRequest): Verdict | Promise<Verdict>
  /** Counts the messages of the WebSocket that the request opens. */
  messagesOf(request: DecideRequest): CountingGate
  /** The refusal by rules that do not need the body; undefined, without any charge, if they let the request pass. */
  refuseUnread(request: DecideRequest): Verdict | undefined | Promise<Verdict | undefined>
  /** Counts a wrong credential by its sender and by itself; the seconds to wait if there were too many. Never rejects. */
  countWrongCredential(client: string, credential: string): Promise<number | undefined>
  /** What the caller has left of its quotas, for the answer at `quotaPath`. */
  quotaOf(routed: Routed): Promise<object>
  sendRejection(req: IncomingRequest, res: OutgoingResponse, rejection: Rejection): void
  finished(event: Finished): void
  /** Called once for each request, when its response and the upstream's part have both ended. */
  ended(): void
}
