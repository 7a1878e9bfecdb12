import type { Deadlines, Timed } from '../../http1/deadlines.js'
import { MAX_INTERIM } from '../../http1/response-limits.js'
import type { BodyReader, Fields } from '../../message.js'
import {
  type ConnectionFault,
  type OutgoingRequest,
  type RequestFraming,
  type ResponseHandler,
  tell,
  type WaitingTimes,
} from '../../outgoing-request.js'
import type { ContentStream } from '../content-receiver.js'
import { malformed } from '../field-rules.js'
import type { DecodedBlock } from '../hpack/decoder.js'
import { STREAM_WINDOW } from '../limits.js'
import { ReceiveWindow } from '../receive-window.js'
import { type BodyStream, ReceivedBody } from '../received-body.js'
import type { SendQueue } from '../send-queue.js'
import type { NumberedSender } from '../stream-set.js'
import { requestFields, type Scheme } from './request-fields.js'
import { responseParts } from './response-head.js'

const NEVER = Number.POSITIVE_INFINITY
const NO_TRAILERS: readonly string[] = []

/** The connection of a stream. */
export interface ClientStreamOwner {
  readonly deadlines: Deadlines
  readonly times: WaitingTimes
  readonly scheme: Scheme
  /** Requests that were answered on the connection. */
  readonly answered: number
  /** Gives the stream its number and its queue; undefined if the connection takes no further streams. */
  open(stream: ClientStream): SendQueue | undefined
  send(stream: ClientStream): void
  /** The final head has come. */
  onHead(stream: ClientStream): void
  /** Content of the stream has been read or dropped. */
  onConsumed(stream: ClientStream, bytes: number): void
  /** The final head was the whole response. @throws {StreamError} */
  onBodyless(stream: ClientStream): void
  /** The upstream has sent the whole response: the stream is over. */
  onAnswered(stream: ClientStream): void
  /** The request is broken off. */
  onAborted(stream: ClientStream): void
  /** The upstream was silent for too long, which ends the stream. */
  onSilent(stream: ClientStream): void
  /** The place is free: nothing of its response is held any more. */
  onReleased(): void
}

/** A request to an upstream, and its response. */
export class ClientStream
  implements OutgoingRequest, Timed, ContentStream, BodyStream, BodyReader, NumberedSender
{
  /** 0 until `ask`. */
  id = 0
  deadline = NEVER
  /** The stream is over, although its response may not yet have been handed over. */
  closed = false
  /** The body of the response, from its final head on. */
  body: ReceivedBody | undefined
  readonly receiveWindow = new ReceiveWindow(STREAM_WINDOW)
  readonly #owner: ClientStreamOwner
  #queue: SendQueue | undefined
  /** Undefined before `ask`, and once nothing more is reported. */
  #handler: ResponseHandler | undefined
  #method = ''
  /** The whole request was handed over. */
  #isSent = false
  /** Kept until the response was handed over, because what it holds counts against the window of the connection. */
  #hasPlace = true
  /** `send` has returned false. */
  #isBlocked = false
  #isPaused = false
  #responseBegan = false
  #interim = 0

  constructor(owner: ClientStreamOwner) {
    this.#owner = owner
  }

  get requests(): number {
    return this.#owner.answered
  }

  /** Only from `ask` on. */
  get queue(): SendQueue {
    return this.#queue as SendQueue
  }

  /** Gives the place to `handler`. */
  offer(handler: ResponseHandler): void {
    this.#tell(one => one.onConnection(this), handler)
  }

  ask(handler: ResponseHandler, method: string, head: string, framing: RequestFraming): void {
    this.#handler = handler
    this.#method = method
    const queue = this.#owner.open(this)
    if (queue === undefined) {
      process.nextTick(() => this.fail('refused', new Error('the connection takes no more requests'), false))
      return
    }
    this.#queue = queue
    this.#owner.deadlines.add(this)
    queue.addHead(0, requestFields(method, head, this.#owner.scheme))
    if (framing.kind === 'none') this.finish(NO_TRAILERS)
    else this.#owner.send(this)
  }

  release(): void {
    this.closed = true
    this.#giveBack()
  }

  send(chunk: Buffer): boolean {
    if (this.closed || this.#isSent || chunk.length === 0) return true
    this.queue.addContent(chunk)
    this.#owner.send(this)
    if (this.closed || this.queue.isEmpty) return true
    this.#isBlocked = true
    this.#awaitHead()
    return false
  }

  /** All frames of one turn leave together anyway. */
  flush(): void {}

  finish(trailers: readonly string[]): void {
    if (this.closed || this.#isSent) return
    this.#isSent = true
    this.#awaitHead()
    this.queue.addEnd(trailers)
    this.#owner.send(this)
  }

  pause(): void {
    if (this.#isPaused || this.#handler === undefined) return
    this.#isPaused = true
    this.deadline = NEVER
    this.body?.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.body?.resume()
    this.#onDelivered()
  }

  abort(): void {
    if (this.#queue === undefined) {
      if (!this.closed) this.release()
      return
    }
    if (!this.closed) this.#owner.onAborted(this)
    this.close()
  }

  onDeadline(): void {
    this.#owner.onSilent(this)
    const { headMs } = this.#times
    this.fail('silent', new Error(`no answer within ${headMs} ms, or a pause in it`), this.#responseBegan)
  }

  /** The head of a response, interim or final. @throws {StreamError} */
  onHead(block: DecodedBlock, endsStream: boolean): void {
    this.#responseBegan = true
    const { head, length } = responseParts(block, this.#method)
    if (head.status < 200) this.#onInterim(head, endsStream)
    else {
      if (endsStream && length !== undefined && length > 0) throw malformed('less content than announced')
      this.deadline = NEVER
      this.body = new ReceivedBody(length, this)
      this.#owner.onHead(this)
      this.#tell(handler => handler.onHead(head))
      if (this.closed) return
      this.body.read(this)
      if (this.#isPaused) this.body.pause()
      if (endsStream) this.#owner.onBodyless(this)
    }
  }

  onBodySent(trailers: readonly string[]): void {
    this.body?.end(trailers)
    this.deadline = NEVER
    this.closed = true
    this.#owner.onAnswered(this)
    this.queue.clear()
  }

  deliver(): void {
    this.body?.deliver()
    this.#onDelivered()
  }

  onSendTurn(): void {
    if (!this.#isBlocked || this.closed || !this.queue.isEmpty) return
    this.#isBlocked = false
    if (this.#isSent) return
    if (this.body === undefined) this.deadline = NEVER
    this.#tell(handler => handler.onSendable())
  }

  onBodyWanted(): void {}

  onConsumed(bytes: number): void {
    this.#owner.onConsumed(this, bytes)
  }

  onData(chunk: Buffer): void {
    this.#tell(handler => handler.onData(chunk))
  }

  onEnd(trailers: readonly string[]): void {
    const handler = this.#handler
    this.close()
    this.#tell(one => one.onEnd(trailers), handler)
  }

  /** What has broken the body off reports it. */
  onAbort(): void {}

  /** The stream has failed, and is over. */
  fail(fault: ConnectionFault, error: Error, responseBegan = this.#responseBegan): void {
    const handler = this.#handler
    this.close()
    this.#tell(one => one.onFault(fault, error, responseBegan), handler)
  }

  /** Nothing more is sent, nor reported. */
  close(): void {
    this.#handler = undefined
    this.closed = true
    this.deadline = NEVER
    this.#owner.deadlines.delete(this)
    this.#queue?.clear()
    this.body?.abort()
    this.#giveBack()
  }

  #giveBack(): void {
    if (!this.#hasPlace) return
    this.#hasPlace = false
    this.#owner.onReleased()
  }

  #onInterim({ status, fields }: { readonly status: number; readonly fields: Fields }, ends: boolean): void {
    this.#interim += 1
    if (this.#interim > MAX_INTERIM) throw malformed('too many interim responses')
    if (status === 101) throw malformed('a switch of protocols')
    if (ends) throw malformed('an interim response that ends the stream')
    if (status !== 100) this.#tell(handler => handler.onInterim(status, fields))
  }

  /** What has arrived was handed over, unless the reader is paused. */
  #onDelivered(): void {
    if (this.#handler === undefined || this.body === undefined) return
    if (!this.#isPaused && !this.closed) this.deadline = this.#owner.deadlines.now() + this.#times.idleMs
    this.#tell(handler => handler.onReadEnd())
  }

  get #times(): WaitingTimes {
    return this.#handler?.times ?? this.#owner.times
  }

  /** What the handler throws ends its request, and neither the connection nor any other request. */
  #tell(call: (handler: ResponseHandler) => void, handler = this.#handler): void {
    if (handler !== undefined) tell(handler, call, () => this.abort())
  }

  /** The upstream has the whole request, or takes no more of it for now. */
  #awaitHead(): void {
    if (this.body === undefined) this.deadline = this.#owner.deadlines.now() + this.#times.headMs
  }
}
