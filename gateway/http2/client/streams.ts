/** The streams of a connection: from requests to the frames of an upstream, and how they end (RFC 9113 section 5). */
import { ContentReceiver } from '../content-receiver.js'
import { errorName } from '../error-names.js'
import { ConnectionError, type StreamError } from '../errors.js'
import { TRAILER_LIMITS } from '../field-rules.js'
import type { FloodLimits } from '../flood.js'
import type { Messages } from '../frame-handler.js'
import type { FrameWriter } from '../frame-writer.js'
import type { BlockLimits, DecodedBlock } from '../hpack/decoder.js'
import { INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from '../protocol.js'
import { StreamSet } from '../stream-set.js'
import { CONNECTION_WINDOW } from './limits.js'
import { HEAD_LIMITS } from './response-head.js'
import type { ClientStream } from './stream.js'

export class ClientStreams implements Messages<ClientStream> {
  readonly streams: StreamSet<ClientStream>
  readonly content: ContentReceiver<ClientStream>
  readonly #floods: FloodLimits

  constructor(writer: FrameWriter, floods: FloodLimits) {
    this.streams = new StreamSet(writer)
    this.content = new ContentReceiver(writer, this.streams, CONNECTION_WINDOW)
    this.#floods = floods
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

  /** The response is whole; an upload that is not is broken off. */
  onAnswered(stream: ClientStream): void {
    if (stream.queue.ended) this.forget(stream)
    else this.end(stream, NO_ERROR)
  }
}
