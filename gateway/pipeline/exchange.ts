/** One admitted request on its way to an upstream: what the transport reads of it, and reports of the upstream's work. */
import type { ErrorCode } from '../errors.js'
import { isGrpc } from '../forward/grpc.js'
import type { Rejection } from '../forward/reject.js'
import type { Exchange } from '../forward/transport.js'
import type { Fields, IncomingBody, IncomingRequest, OutgoingResponse } from '../message.js'
import type { RouteChanges } from '../route.js'
import type { Facts, Project } from '../types.js'
import type { AnswerTail, MessageGate } from '../verdict.js'
import { upstreamAnswered, upstreamEnded } from './end.js'
import type { Routed } from './enter.js'
import type { PipelineParts } from './parts.js'
import type { RequestContext } from './request-context.js'

/** The response was cut after it had begun, by the upstream or by the gateway. */
export const ANSWER_CUT = 'answer-cut'

const NONE: readonly string[] = []

/** Answers a request in the upstream's place. */
export type Refuse = (rejection: Rejection, cause?: string) => void

export class UpstreamExchange implements Exchange {
  readonly facts: Facts
  readonly project: Project
  readonly req: IncomingRequest
  readonly res: OutgoingResponse
  readonly changes: RouteChanges | undefined
  readonly strippedFields: readonly string[] | undefined
  readonly body: IncomingBody | undefined
  readonly answerFields: readonly string[]
  readonly removedFields: readonly string[] | undefined
  readonly addedFields: readonly string[] | undefined
  readonly tail: AnswerTail | undefined
  readonly messages: MessageGate | undefined
  readonly #context: RequestContext
  readonly #parts: PipelineParts
  readonly #refuse: Refuse

  constructor(
    context: RequestContext,
    { facts, project, caller, route }: Routed,
    parts: PipelineParts,
    refuse: Refuse,
  ) {
    this.facts = facts
    this.project = project
    this.req = context.req
    this.res = context.res
    this.changes = route.changes
    this.strippedFields = caller?.stripped.length === 0 ? undefined : caller?.stripped
    this.body = context.body
    this.tail = context.tail
    this.messages = context.messages
    const { answerFields, removedFields = NONE, routeFields } = context
    this.answerFields = routeFields === undefined ? answerFields : [...routeFields.set, ...answerFields]
    this.removedFields =
      routeFields === undefined ? context.removedFields : [...routeFields.removed, ...removedFields]
    this.addedFields = routeFields?.added
    this.#context = context
    this.#parts = parts
    this.#refuse = refuse
  }

  /**
   * True while a slot is held; `maxHold` may release it before the request ends. A server of gRPC ends a call that its
   * client cancels, and so must be told.
   */
  get keepUpstream(): boolean {
    return (this.#context.verdict?.holdsSlot ?? false) && !isGrpc(this.req)
  }

  onAttempt(address: string): void {
    this.#context.address = address
  }

  onSent(): void {
    this.#context.isSent = true
  }

  onAnswer(status: number, fields: Fields): void {
    const context = this.#context
    context.source = 'upstream'
    context.isSent = true
    context.upstreamMs = performance.now() - context.judgedAt
    upstreamAnswered(context, status, fields)
  }

  onCut(cause: string): void {
    this.#context.error = ANSWER_CUT
    this.#context.cause = cause
  }

  fail(code: ErrorCode, cause?: string): void {
    const context = this.#context
    if (context.address !== '') context.upstreamMs ??= performance.now() - context.judgedAt
    this.#refuse({ code, requestId: context.req.id }, cause)
  }

  onUpstreamEnd(): void {
    upstreamEnded(this.#context, this.#parts)
  }
}
