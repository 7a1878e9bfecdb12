/** The bodies of a connection's requests, from DATA frames to their readers (RFC 9113 sections 5.2, 6.1 and 8.1). */
import { ConnectionError, StreamError } from '../errors.js'
import type { FrameWriter } from '../frame-writer.js'
import type { DecodedBlock } from '../hpack/decoder.js'
import { CONNECTION_WINDOW, OPENING_INCREMENT } from '../limits.js'
import { ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, PROTOCOL_ERROR, STREAM_CLOSED } from '../protocol.js'
import { ReceiveWindow } from '../receive-window.js'
import { requestTrailers } from './request-head.js'
import type { ServerStream } from './stream.js'
import type { ServerStreams } from './streams.js'

const NO_TRAILERS: readonly string[] = []

export class Uploads {
  readonly #writer: FrameWriter
  readonly #streams: Pick<ServerStreams, 'get' | 'checkWasReset'>
  readonly #window = new ReceiveWindow(CONNECTION_WINDOW)
  /** The stream of the current DATA frame; undefined if its content is dropped. */
  #current: ServerStream | undefined
  #currentEnds = false
  /** Streams with content, or the end of their body, in the current read. */
  #moved = new Set<ServerStream>()

  constructor(writer: FrameWriter, streams: Pick<ServerStreams, 'get' | 'checkWasReset'>) {
    this.#writer = writer
    this.#streams = streams
  }

  /** Tells the client how much it may send on all streams together. */
  announce(): void {
    this.#writer.windowUpdate(0, OPENING_INCREMENT)
  }

  /** A DATA frame begins. @throws {ConnectionError} @throws {StreamError} */
  onData(id: number, length: number, content: number, endsStream: boolean): void {
    if (!this.#window.take(length)) throw new ConnectionError(FLOW_CONTROL_ERROR, 'more content than allowed')
    this.#current = undefined
    this.#currentEnds = endsStream
    try {
      this.#current = this.#receiverOf(id, length, content)
    } finally {
      if (this.#current === undefined) this.#consume(length)
    }
    if (this.#current !== undefined && length > content) this.onConsumed(this.#current, length - content)
  }

  onContent(bytes: Buffer): void {
    const stream = this.#current
    // Content that is dropped was counted with its frame.
    if (stream === undefined) return
    stream.body?.push(bytes)
    this.#moved.add(stream)
  }

  /** The current DATA frame is complete. @throws {StreamError} */
  onDataEnd(): void {
    const stream = this.#current
    this.#current = undefined
    if (stream !== undefined && !stream.closed && this.#currentEnds) this.#end(stream, NO_TRAILERS)
  }

  /** @throws {StreamError} */
  onTrailers(stream: ServerStream, { fields, isWhole }: DecodedBlock, endsStream: boolean): void {
    if (!stream.isUploading) throw new StreamError(STREAM_CLOSED, 'trailers of a request that has ended')
    if (!endsStream) throw new StreamError(PROTOCOL_ERROR, 'trailers that do not end the stream')
    if (!isWhole) throw new StreamError(ENHANCE_YOUR_CALM, 'too many trailers')
    this.#end(stream, requestTrailers(fields))
  }

  /** The bytes of a read have been parsed: their content is handed over. */
  onReadEnd(): void {
    if (this.#moved.size === 0) return
    const moved = this.#moved
    this.#moved = new Set()
    for (const stream of moved) stream.deliver()
  }

  /** Content of the stream has been read or dropped. */
  onConsumed(stream: ServerStream, bytes: number): void {
    this.#consume(bytes)
    if (stream.closed || !stream.isUploading) return
    const increment = stream.receiveWindow.consume(bytes)
    if (increment > 0) this.#writer.windowUpdate(stream.id, increment)
  }

  /** The stream that a DATA frame is for; undefined if it is to be dropped. */
  #receiverOf(id: number, length: number, content: number): ServerStream | undefined {
    const stream = this.#streams.get(id)
    if (stream === undefined) {
      this.#streams.checkWasReset(id)
      return undefined
    }
    if (!stream.isUploading) throw new StreamError(STREAM_CLOSED, 'content of a request that has ended')
    if (!stream.receiveWindow.take(length)) throw new StreamError(FLOW_CONTROL_ERROR, 'more than allowed')
    if (stream.received + content > (stream.parts.length ?? Number.POSITIVE_INFINITY)) {
      throw new StreamError(PROTOCOL_ERROR, 'more content than announced')
    }
    return stream
  }

  #end(stream: ServerStream, trailers: readonly string[]): void {
    const { length } = stream.parts
    if (length !== undefined && stream.received < length) {
      throw new StreamError(PROTOCOL_ERROR, 'less content than announced')
    }
    stream.onUploaded(trailers)
    this.#moved.add(stream)
  }

  #consume(bytes: number): void {
    const increment = this.#window.consume(bytes)
    if (increment > 0) this.#writer.windowUpdate(0, increment)
  }
}
