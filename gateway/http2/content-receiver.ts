/** The bodies that a connection receives, from DATA frames to their readers (RFC 9113 sections 5.2, 6.1 and 8.1). */
import { ConnectionError, StreamError } from './errors.js'
import { trailersOf } from './field-rules.js'
import type { FrameWriter } from './frame-writer.js'
import type { DecodedBlock } from './hpack/decoder.js'
import {
  DEFAULT_WINDOW,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  PROTOCOL_ERROR,
  STREAM_CLOSED,
} from './protocol.js'
import { ReceiveWindow } from './receive-window.js'
import type { ReceivedBody } from './received-body.js'

const NO_TRAILERS: readonly string[] = []

/** A stream that content arrives on. */
export interface ContentStream {
  readonly id: number
  /** The stream is neither open nor half open any more. */
  readonly closed: boolean
  readonly receiveWindow: ReceiveWindow
  /** Undefined while no content may arrive. */
  readonly body: ReceivedBody | undefined
  /** The peer has sent the whole body. */
  onBodySent(trailers: readonly string[]): void
  /** Hands over what has arrived in this read. */
  deliver(): void
}

interface OpenStreams<Stream> {
  get(id: number): Stream | undefined
  /** @throws {ConnectionError} @throws {StreamError} */
  checkWasReset(id: number): void
}

export class ContentReceiver<Stream extends ContentStream> {
  readonly #writer: FrameWriter
  readonly #streams: OpenStreams<Stream>
  readonly #windowSize: number
  readonly #window: ReceiveWindow
  /** The stream of the current DATA frame; undefined if its content is dropped. */
  #current: Stream | undefined
  #currentEnds = false
  /** Streams with content, or the end of their body, in the current read. */
  #moved = new Set<Stream>()

  /** @param window bytes that the peer may send on all streams together before they are read */
  constructor(writer: FrameWriter, streams: OpenStreams<Stream>, window: number) {
    this.#writer = writer
    this.#streams = streams
    this.#windowSize = window
    this.#window = new ReceiveWindow(window)
  }

  /** Tells the peer how much it may send on all streams together. */
  announce(): void {
    this.#writer.windowUpdate(0, this.#windowSize - DEFAULT_WINDOW)
  }

  /** A DATA frame begins. False if its content is dropped. @throws {ConnectionError} @throws {StreamError} */
  onData(id: number, length: number, content: number, endsStream: boolean): boolean {
    if (!this.#window.take(length)) throw new ConnectionError(FLOW_CONTROL_ERROR, 'more content than allowed')
    this.#current = undefined
    this.#currentEnds = endsStream
    try {
      this.#current = this.#receiverOf(id, length, content)
    } finally {
      if (this.#current === undefined) this.#consume(length)
    }
    if (this.#current === undefined) return false
    if (length > content) this.onConsumed(this.#current, length - content)
    return true
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
  onTrailers(stream: Stream, { fields, isWhole }: DecodedBlock, endsStream: boolean): void {
    if (!isReceiving(stream)) throw new StreamError(STREAM_CLOSED, 'trailers of a body that has ended')
    if (!endsStream) throw new StreamError(PROTOCOL_ERROR, 'trailers that do not end the stream')
    if (!isWhole) throw new StreamError(ENHANCE_YOUR_CALM, 'too many trailers')
    this.#end(stream, trailersOf(fields))
  }

  /** The body has no content, and ends with its head. @throws {StreamError} */
  onBodyless(stream: Stream): void {
    this.#end(stream, NO_TRAILERS)
  }

  /** The stream’s head has come: `deliver` is called at the end of the read, even if no content has come. */
  onHead(stream: Stream): void {
    this.#moved.add(stream)
  }

  /** The bytes of a read have been parsed: their content is handed over. */
  onReadEnd(): void {
    if (this.#moved.size === 0) return
    const moved = this.#moved
    this.#moved = new Set()
    for (const stream of moved) stream.deliver()
  }

  /** Content of the stream has been read or dropped. */
  onConsumed(stream: Stream, bytes: number): void {
    this.#consume(bytes)
    if (stream.closed || !isReceiving(stream)) return
    const increment = stream.receiveWindow.consume(bytes)
    if (increment > 0) this.#writer.windowUpdate(stream.id, increment)
  }

  /** The stream that a DATA frame is for; undefined if it is to be dropped. */
  #receiverOf(id: number, length: number, content: number): Stream | undefined {
    const stream = this.#streams.get(id)
    if (stream === undefined) {
      this.#streams.checkWasReset(id)
      return undefined
    }
    const { body } = stream
    if (!isReceiving(stream) || body === undefined)
      throw new StreamError(STREAM_CLOSED, 'content out of place')
    if (!stream.receiveWindow.take(length)) throw new StreamError(FLOW_CONTROL_ERROR, 'more than allowed')
    if (body.received + content > (body.length ?? Number.POSITIVE_INFINITY)) {
      throw new StreamError(PROTOCOL_ERROR, 'more content than announced')
    }
    return stream
  }

  #end(stream: Stream, trailers: readonly string[]): void {
    const { length, received } = stream.body as ReceivedBody
    if (length !== undefined && received < length) {
      throw new StreamError(PROTOCOL_ERROR, 'less content than announced')
    }
    stream.onBodySent(trailers)
    this.#moved.add(stream)
  }

  #consume(bytes: number): void {
    const increment = this.#window.consume(bytes)
    if (increment > 0) this.#writer.windowUpdate(0, increment)
  }
}

/** True until the peer has sent all of the body. */
export function isReceiving({ body }: Pick<ContentStream, 'body'>): boolean {
  return body?.ended === false
}
