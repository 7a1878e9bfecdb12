import type { Deadlines, Timed } from '../../http1/deadlines.js'
import { type ContentStream, isReceiving } from '../content-receiver.js'
import type { FrameWriter } from '../frame-writer.js'
import { STREAM_WINDOW } from '../limits.js'
import { INTERNAL_ERROR } from '../protocol.js'
import { ReceiveWindow } from '../receive-window.js'
import { type BodyStream, ReceivedBody } from '../received-body.js'
import type { Sender } from '../send-order.js'
import { SendQueue } from '../send-queue.js'
import type { RequestParts } from './request-head.js'
import { Http2Response, type ResponseStream } from './response.js'

const NEVER = Number.POSITIVE_INFINITY

/** The connection of a stream. */
export interface StreamOwner {
  readonly writer: FrameWriter
  readonly deadlines: Deadlines
  /** Time for a client to send a body, and to take the end of a response. */
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  send(stream: ServerStream): void
  /** Content of the stream has been read or dropped. */
  onConsumed(stream: ServerStream, bytes: number): void
  /** The last frame of the response was sent. */
  onAnswered(stream: ServerStream): void
  /** A reader of its body threw. */
  onFailed(stream: ServerStream, error: unknown): void
  /** Resets the stream, and forgets it. */
  reset(stream: ServerStream, code: number): void
}

/** A request and its response. */
export class ServerStream implements Timed, ContentStream, BodyStream, ResponseStream, Sender {
  readonly id: number
  readonly parts: RequestParts
  readonly body: ReceivedBody | undefined
  readonly response: Http2Response
  readonly queue: SendQueue
  readonly receiveWindow = new ReceiveWindow(STREAM_WINDOW)
  /** Places that the request takes of its client's limit, once it has begun. */
  places = 0
  /** The stream is neither open nor half open any more. */
  closed = false
  deadline = NEVER
  readonly #owner: StreamOwner
  #uploadEnds = NEVER
  #readerEnds = NEVER
  #readerMs = 0
  #isTimed = false
  /** Something waits for the client. */
  #waits = false

  constructor(id: number, parts: RequestParts, hasBody: boolean, window: number, owner: StreamOwner) {
    this.id = id
    this.parts = parts
    this.#owner = owner
    this.queue = new SendQueue(id, owner.writer, window)
    this.body = hasBody ? new ReceivedBody(parts.length, this) : undefined
    this.response = new Http2Response(this, parts.method, parts.fields)
    if (hasBody) {
      this.#uploadEnds = owner.deadlines.now() + owner.requestTimeoutMs
      this.#updateDeadline()
    }
  }

  /** True until the client has sent all of the request. */
  get isUploading(): boolean {
    return isReceiving(this)
  }

  onBodyWanted(): void {
    if (this.parts.fields.get('expect')?.toLowerCase() === '100-continue' && this.response.status === 0) {
      this.interim(100, [])
    }
  }

  onConsumed(bytes: number): void {
    this.#owner.onConsumed(this, bytes)
  }

  onBodySent(trailers: readonly string[]): void {
    this.body?.end(trailers)
    this.#uploadEnds = NEVER
    this.#updateDeadline()
  }

  deliver(): void {
    try {
      this.body?.deliver()
    } catch (error) {
      this.#owner.onFailed(this, error)
    }
  }

  send(): void {
    if (!this.closed) this.#owner.send(this)
  }

  interim(status: number, fields: readonly string[]): void {
    const { writer } = this.#owner
    // A client that is slow to read must not make interim responses pile up in memory.
    if (!this.closed && this.queue.isEmpty && !writer.isFull) writer.headers(this.id, status, fields, false)
  }

  onFinalHead(): void {
    if (this.body?.begun === false) this.body.drop()
  }

  onSendTurn(hasSent: boolean): void {
    const { queue } = this
    if (queue.ended) this.#owner.onAnswered(this)
    else if (queue.isEmpty) {
      const hasWaited = this.#waits
      this.#waits = false
      this.#limitWait()
      if (hasWaited) this.response.onDrain()
    } else if (hasSent || !this.#waits) {
      this.#waits = true
      this.#limitWait()
    }
  }

  /** Not reported at once: the caller is in the midst of something. */
  cut(): void {
    if (this.closed) return
    this.#owner.reset(this, INTERNAL_ERROR)
    setImmediate(() => this.close())
  }

  limitReader(ms: number): void {
    this.#readerMs = ms
    this.#limitWait()
  }

  onDeadline(): void {
    this.response.cut()
  }

  /** The stream has ended, in whichever way: the response is reported as closed, and the body as aborted. */
  close(): void {
    this.closed = true
    this.queue.clear()
    if (this.#isTimed) this.#owner.deadlines.delete(this)
    this.#isTimed = false
    this.response.close()
    this.body?.abort()
  }

  /**
   * The time of the client's wait begins again. Of what is being written nobody sees how much has arrived, so a response that
   * waits for that has twice the time: 1 KB/s is then fast enough.
   */
  #limitWait(): void {
    const limit = this.#readerMs || (this.response.ended ? this.#owner.keepAliveMs : 0)
    const ms = this.#owner.writer.isFull ? 2 * limit : limit
    const ends = this.#waits && ms > 0 ? this.#owner.deadlines.now() + ms : NEVER
    if (ends === this.#readerEnds) return
    this.#readerEnds = ends
    this.#updateDeadline()
  }

  #updateDeadline(): void {
    this.deadline = Math.min(this.#uploadEnds, this.#readerEnds)
    if (this.#isTimed || this.deadline === NEVER || this.closed) return
    this.#isTimed = true
    this.#owner.deadlines.add(this)
  }
}
