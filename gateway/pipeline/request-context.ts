/** What is known of one request in the pipeline. Data only: the pipeline fills it in, step by step. */
import type { IncomingBody, IncomingRequest, OutgoingResponse, Takeover } from '../message.js'
import type { RequestTrace } from '../observe/tracing/tracing.js'
import type { Calls, Facts, Matched } from '../types.js'
import type { AnswerSource, AnswerTail, Verdict } from '../verdict.js'
import { answerFieldsOf } from './answer.js'
import type { Entered } from './enter.js'
import type { CountingGate, Upstream } from './parts.js'

const NONE: readonly Matched[] = []

/** Fields that a route gives to a response, as flat lists. */
export interface RouteFields {
  /** In place of those of an upstream. */
  readonly set: readonly string[]
  /** Beside those of an upstream. */
  readonly added: readonly string[]
  /** Lower-case names that are removed from the upstream's. */
  readonly removed: readonly string[]
  /** True if the route says what pages of other origins may read. */
  readonly hasCors: boolean
  /** False if it says so, and the page that asks is not among them. */
  readonly isReadable: boolean
}

export class RequestContext {
  /** With the fields that the upstream gets. */
  req: IncomingRequest
  readonly res: OutgoingResponse
  /** Undefined if it is not traced. */
  readonly trace: RequestTrace | undefined
  readonly startedAt = Date.now()
  /** When it arrived; like the other times, by `performance.now()`. */
  readonly arrivedAt = performance.now()
  /** Revision of the policy that decides about it. */
  revision = ''
  /** Undefined for a request too malformed to have any. */
  facts: Facts | undefined
  /** Project, route and rules; undefined until they are known. */
  entered: Entered | undefined
  upstream: Upstream | undefined
  /** The request body, if it has been inspected; otherwise that of `req` is forwarded. */
  body: IncomingBody | undefined
  /** `body` was only begun while the request waited: nobody has looked at it. */
  isReadAhead = false
  /** The JSON-RPC calls in the body, if an enforced rule counts by them: a refusal answers them. */
  calls: Calls | undefined
  /** Pending verdict. A client may leave before it, but the request is still charged and must be recorded. */
  judged: Promise<void> | undefined
  verdict: Verdict | undefined
  /** Report-only rules that read the body while it is being forwarded. */
  observing: readonly Matched[] = NONE
  /** Their verdict. */
  beside: Promise<Verdict> | undefined
  /** Time of the verdict. */
  judgedAt = 0
  limiterUs = 0
  /** The gateway's own fields of the response, and the lower-case names of upstream fields that are removed. */
  answerFields: readonly string[]
  removedFields: readonly string[] | undefined
  /** The route's own fields of the response; undefined if it has none. */
  routeFields: RouteFields | undefined
  /** The end of the upstream's response, if a rule settles by it. */
  tail: AnswerTail | undefined
  /** True once the request was on its way to an upstream. */
  isSent = false
  /** The backend it was last sent to; '' before. */
  address = ''
  /** Milliseconds from the verdict to the upstream's response head. */
  upstreamMs: number | undefined
  /** Whose response the client gets. */
  source: AnswerSource = 'gateway'
  error: string | undefined
  /** Status of the gateway's refusal in the catalogue: for gRPC the response says it in another way. */
  refusedAs: number | undefined
  cause: string | undefined
  /** The upstream's part; it has ended, too, if it will not begin. */
  upstreamPart: 'ahead' | 'running' | 'ended' = 'ahead'
  /** True once the response has ended and the request is recorded. */
  isRecorded = false
  /** Set once the connection was taken over for a WebSocket; the request then ends with the tunnel. */
  tunnel: PassedBytes | undefined

  /** Its messages, if a rule counts them. */
  messages: CountingGate | undefined

  constructor(req: IncomingRequest, res: OutgoingResponse, trace: RequestTrace | undefined) {
    this.req = req
    this.res = res
    this.trace = trace
    this.answerFields = answerFieldsOf(req.id)
  }
}

/** Counts the bytes on a client's connection after it has left HTTP. */
export class PassedBytes {
  readonly #socket: Takeover['socket']
  readonly #readBefore: number
  readonly #writtenBefore: number

  constructor({ socket, head }: Takeover) {
    this.#socket = socket
    this.#readBefore = socket.bytesRead - head.length
    this.#writtenBefore = socket.bytesWritten
  }

  get read(): number {
    return this.#socket.bytesRead - this.#readBefore
  }

  get written(): number {
    return this.#socket.bytesWritten - this.#writtenBefore
  }
}
