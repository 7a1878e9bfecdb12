/** The streams of a connection: from requests to the frames of an upstream, and how they end (RFC 9113 section 5). */
import type { Deadlines } from '../../http1/deadlines.js'
import type { ResponseHandler, WaitingTimes } from '../../outgoing-request.js'
import { ContentReceiver } from '../content-receiver.js'
import { errorName } from '../error-names.js'
import { ConnectionError, type StreamError } from '../errors.js'
import { TRAILER_LIMITS } from '../field-rules.js'
import type { FloodLimits } from '../flood.js'
import type { Messages } from '../frame-handler.js'
import type { FrameWriter } from '../frame-writer.js'
import type { BlockLimits, DecodedBlock } from '../hpack/decoder.js'
import { MAX_STREAMS } from '../limits.js'
import { CANCEL, INTERNAL_ERROR, MAX_31_BITS, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from '../protocol.js'
import { SendQueue } from '../send-queue.js'
import { StreamSet } from '../stream-set.js'
import { CONNECTION_WINDOW } from './limits.js'
import type { Scheme } from './request-fields.js'
import { HEAD_LIMITS } from './response-head.js'
import { ClientStream, type ClientStreamOwner } from './stream.js'

/** The connection of the streams. */
export interface ClientStreamsOwner {
  readonly deadlines: Deadlines
  readonly times: WaitingTimes
  readonly scheme: Scheme
  /** False once the connection takes no further requests. */
  readonly takesRequests: boolean
  /** A request was begun while no other is in progress. */
  onBusy(): void
  /** The upstream was silent for too long about a request. */
  onSilent(): void
  /** A place has become free. */
  onPlaceFree(): void
}

export class ClientStreams implements Messages<ClientStream>, ClientStreamOwner {
  readonly deadlines: Deadlines
  readonly times: WaitingTimes
  readonly scheme: Scheme
  answered = 0
  /** Places that are taken, by requests whose response was not yet handed over. */
  places = 0
  readonly streams: StreamSet<ClientStream>
  readonly content: ContentReceiver<ClientStream>
  readonly #owner: ClientStreamsOwner
  readonly #writer: FrameWriter
  readonly #floods: FloodLimits

  constructor(owner: ClientStreamsOwner, writer: FrameWriter, floods: FloodLimits) {
    this.#owner = owner
    this.#writer = writer
    this.deadlines = owner.deadlines
    this.times = owner.times
    this.scheme = owner.scheme
    this.streams = new StreamSet(writer)
    this.content = new ContentReceiver(writer, this.streams, CONNECTION_WINDOW)
    this.#floods = floods
  }

  /** The numbers of streams are nearly used up. */
  get isWornOut(): boolean {
    return this.streams.last > MAX_31_BITS - 2 * MAX_STREAMS
  }

  /** Gives `handler` a place. */
  take(handler: ResponseHandler): void {
    this.places += 1
    new ClientStream(this).offer(handler)
  }

  limitsOf(id: number): BlockLimits {
    return this.streams.get(id)?.body === undefined ? HEAD_LIMITS : TRAILER_LIMITS
  }

  onHeaders(id: number, block: DecodedBlock, endsStream: boolean): void {
    if (id % 2 === 0) throw new ConnectionError(PROTOCOL_ERROR, 'a stream that an upstream cannot open')
    this.streams.checkNotIdle(id)
    const stream = this.streams.get(id)
    if (stream === undefined) this.#floods.countIdle()
    else if (!stream.queue.begun) throw new ConnectionError(PROTOCOL_ERROR, 'a response before its request')
    else if (stream.body === undefined) stream.onHead(block, endsStream)
    else this.content.onTrailers(stream, block, endsStream)
  }

  onReset(id: number, code: number): void {
    this.streams.checkNotIdle(id)
    const stream = this.streams.get(id)
    if (stream === undefined) {
      this.#floods.countIdle()
      return
    }
    const isRefused = code === REFUSED_STREAM && stream.body === undefined
    this.forget(stream)
    const error = new Error(`the upstream has reset the stream: ${errorName(code)}`)
    // A reset is a response to the request, unless the upstream says that it has not looked at it.
    if (isRefused) stream.fail('refused', error)
    else stream.fail(code === INTERNAL_ERROR ? 'failed' : 'not-accepted', error, true)
  }

  onMalformed(id: number, error: StreamError): void {
    const stream = this.streams.get(id)
    if (stream === undefined) this.#floods.countIdle()
    else {
      this.end(stream, error.code)
      stream.fail('invalid', error, true)
    }
  }

  /** The upstream has not looked at the streams above `lastStream`. */
  refuseAfter(lastStream: number, error: Error): void {
    for (const stream of [...this.streams.all()]) {
      if (stream.id <= lastStream) continue
      this.forget(stream)
      stream.fail('refused', error)
    }
  }

  /** Ends the stream before its time. */
  end(stream: ClientStream, code: number): void {
    // The upstream knows nothing of a stream whose head is still here.
    if (stream.queue.begun) this.streams.reset(stream.id, code)
    this.forget(stream)
  }

  /** The stream is over, both ways. */
  forget(stream: ClientStream): void {
    stream.closed = true
    this.streams.delete(stream)
  }

  open(stream: ClientStream): SendQueue | undefined {
    if (!this.#owner.takesRequests) return undefined
    this.streams.last = this.streams.last === 0 ? 1 : this.streams.last + 2
    stream.id = this.streams.last
    this.streams.add(stream)
    if (this.places === 1) this.#owner.onBusy()
    return new SendQueue(stream.id, this.#writer, this.streams.initialWindow)
  }

  send(stream: ClientStream): void {
    this.streams.send(stream)
  }

  onHead(stream: ClientStream): void {
    this.answered += 1
    this.content.onHead(stream)
  }

  onConsumed(stream: ClientStream, bytes: number): void {
    this.content.onConsumed(stream, bytes)
  }

  onBodyless(stream: ClientStream): void {
    this.content.onBodyless(stream)
  }

  onAborted(stream: ClientStream): void {
    this.end(stream, CANCEL)
  }

  onSilent(stream: ClientStream): void {
    this.#owner.onSilent()
    this.end(stream, CANCEL)
  }

  onReleased(): void {
    this.places -= 1
    this.#owner.onPlaceFree()
  }

  /** The response is whole; an upload that is not is broken off. */
  onAnswered(stream: ClientStream): void {
    if (stream.queue.ended) this.forget(stream)
    else this.end(stream, NO_ERROR)
  }
}
