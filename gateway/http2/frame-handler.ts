/** What the frames of a peer mean for its connection (RFC 9113 section 6); those of messages go to the streams. */
import type { ContentReceiver, ContentStream } from './content-receiver.js'
import { ConnectionError, floodError, StreamError } from './errors.js'
import type { FloodLimits } from './flood.js'
import { type FrameSink, uint32At } from './frame-reader.js'
import type { FrameWriter } from './frame-writer.js'
import { type HeaderBlock, HeaderBlocks } from './header-block.js'
import { CompressionBomb, CompressionError } from './hpack/compression-error.js'
import { type BlockLimits, type DecodedBlock, HeaderDecoder } from './hpack/decoder.js'
import {
  ACK,
  COMPRESSION_ERROR,
  CONTINUATION,
  ENABLE_PUSH,
  END_STREAM,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADER_TABLE_SIZE,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  MAX_31_BITS,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from './protocol.js'
import { readSettings } from './settings.js'
import type { NumberedSender, StreamSet } from './stream-set.js'

/** The messages of one side: the requests of a client, or the responses of an upstream. */
export interface Messages<Stream extends NumberedSender & ContentStream> {
  readonly streams: StreamSet<Stream>
  readonly content: ContentReceiver<Stream>
  /** Limits of a header block that has come on a stream. */
  limitsOf(stream: number): BlockLimits
  /** A whole header block, on any stream. @throws {ConnectionError} @throws {StreamError} */
  onHeaders(stream: number, block: DecodedBlock, endsStream: boolean): void
  /** The peer has reset a stream, open or not. @throws {ConnectionError} */
  onReset(stream: number, code: number): void
  /** A frame of the stream, open or not, broke a rule. @throws {ConnectionError} */
  onMalformed(stream: number, error: StreamError): void
}

export interface ConnectionEvents {
  /** PING has come, or the reply to ours. @throws {ConnectionError} */
  onPing(isReply: boolean): void
  /** The peer will begin no further streams, and handles ours up to `lastStream` only. */
  onGoaway(lastStream: number, code: number): void
  /** Whether the peer takes pushes: 0 or 1. @throws {ConnectionError} */
  onEnablePush?(value: number): void
  /** How many streams the peer allows at a time. */
  onMaxStreams?(value: number): void
}

export class FrameHandler<Stream extends NumberedSender & ContentStream> implements FrameSink {
  readonly #writer: FrameWriter
  readonly #floods: FloodLimits
  readonly #messages: Messages<Stream>
  readonly #events: ConnectionEvents
  readonly #decoder = new HeaderDecoder()
  readonly #blocks = new HeaderBlocks()
  /** Frames so far. */
  #frames = 0
  /** Their number when the header block that is open began. */
  #blockBegan = 0
  /** The stream of the current DATA frame. */
  #dataStream = 0
  /** The peer's first frame, SETTINGS, has come. */
  hasSettings = false

  constructor(
    writer: FrameWriter,
    floods: FloodLimits,
    messages: Messages<Stream>,
    events: ConnectionEvents,
  ) {
    this.#writer = writer
    this.#floods = floods
    this.#messages = messages
    this.#events = events
  }

  /**
   * What has arrived in part, as a number of its own: a header block, or else the frame that the reader is within.
   * Undefined if nothing has.
   */
  partOf(isWithinFrame: boolean): number | undefined {
    if (this.#blocks.isOpen) return this.#blockBegan
    return isWithinFrame ? this.#frames : undefined
  }

  onFrame(type: number, flags: number, stream: number, bytes: Buffer, at: number, end: number): void {
    this.#frames += 1
    try {
      this.#handle(type, flags, stream, bytes, at, end)
    } catch (error) {
      this.#onError(stream, error)
    }
  }

  onData(flags: number, stream: number, length: number, content: number): void {
    this.#frames += 1
    this.#dataStream = stream
    try {
      this.#checkOrder()
      checkPlace(stream !== 0, true)
      const endsStream = (flags & END_STREAM) !== 0
      if (content === 0 && !endsStream) this.#floods.countIdle()
      // What comes on a stream that was reset is dropped.
      if (!this.#messages.content.onData(stream, length, content, endsStream)) this.#floods.countIdle()
    } catch (error) {
      this.#onError(stream, error)
    }
  }

  onContent(bytes: Buffer): void {
    this.#messages.content.onContent(bytes)
  }

  onDataEnd(): void {
    try {
      this.#messages.content.onDataEnd()
    } catch (error) {
      this.#onError(this.#dataStream, error)
    }
  }

  #handle(type: number, flags: number, stream: number, bytes: Buffer, at: number, end: number): void {
    this.#checkOrder(type, flags)
    const length = end - at
    switch (type) {
      case HEADERS:
        checkPlace(stream !== 0, true)
        this.#blockBegan = this.#frames
        this.#onBlock(this.#blocks.begin(flags, stream, bytes, at, end))
        break
      case CONTINUATION:
        this.#onBlock(this.#blocks.continue(flags, stream, bytes.subarray(at, end)))
        break
      case PRIORITY:
        this.#onPriority(stream, length, bytes, at)
        break
      case RST_STREAM:
        checkPlace(stream !== 0, length === 4)
        this.#messages.onReset(stream, uint32At(bytes, at))
        break
      case SETTINGS:
        this.#onSettings(flags, stream, bytes, at, end)
        break
      case PUSH_PROMISE:
        throw new ConnectionError(PROTOCOL_ERROR, 'PUSH_PROMISE, which is never allowed here')
      case PING:
        checkPlace(stream === 0, length === 8)
        this.#onPing(flags, bytes, at, end)
        break
      case GOAWAY:
        checkPlace(stream === 0, length >= 8)
        this.#floods.countIdle()
        this.#events.onGoaway(uint32At(bytes, at) & MAX_31_BITS, uint32At(bytes, at + 4))
        break
      case WINDOW_UPDATE:
        checkPlace(true, length === 4)
        this.#floods.countIdle()
        this.#messages.streams.onWindowUpdate(stream, uint32At(bytes, at) & MAX_31_BITS)
        break
      default:
        this.#floods.countIdle()
    }
  }

  #onError(stream: number, error: unknown): void {
    if (!(error instanceof StreamError)) throw error
    this.#messages.onMalformed(stream, error)
  }

  /** SETTINGS comes first (RFC 9113 section 3.4); nothing comes between the frames of a header block. */
  #checkOrder(type?: number, flags = 0): void {
    if (!this.hasSettings) {
      if (type !== SETTINGS || (flags & ACK) !== 0) {
        throw new ConnectionError(PROTOCOL_ERROR, 'a frame before SETTINGS')
      }
      this.hasSettings = true
    }
    if (this.#blocks.isOpen && type !== CONTINUATION) {
      throw new ConnectionError(PROTOCOL_ERROR, 'a frame within a header block')
    }
  }

  #onBlock(block: HeaderBlock | undefined): void {
    if (block === undefined) return
    const { stream, bytes, endsStream, dependsOnItself } = block
    // In any case, because the tables of both sides must remain equal.
    const list = this.#decode(bytes, this.#messages.limitsOf(stream))
    this.#messages.onHeaders(stream, list, endsStream)
    if (dependsOnItself) throw new StreamError(PROTOCOL_ERROR, 'a stream that depends on itself')
  }

  #decode(bytes: Buffer, limits: BlockLimits): DecodedBlock {
    try {
      return this.#decoder.decode(bytes, limits)
    } catch (error) {
      if (error instanceof CompressionBomb) throw floodError('header-compression')
      if (!(error instanceof CompressionError)) throw error
      throw new ConnectionError(COMPRESSION_ERROR, error.message)
    }
  }

  /** Priorities are not followed (RFC 9113 section 5.3.2). */
  #onPriority(stream: number, length: number, bytes: Buffer, at: number): void {
    checkPlace(stream !== 0, true)
    this.#floods.countIdle()
    const dependsOnItself = length === 5 && (uint32At(bytes, at) & MAX_31_BITS) === stream
    if (length === 5 && !dependsOnItself) return
    // Only a stream that has begun can be reset.
    this.#messages.streams.checkNotIdle(stream)
    if (dependsOnItself) throw new StreamError(PROTOCOL_ERROR, 'a stream that depends on itself')
    throw new StreamError(FRAME_SIZE_ERROR, 'a priority of the wrong size')
  }

  #onSettings(flags: number, stream: number, bytes: Buffer, at: number, end: number): void {
    const isAck = (flags & ACK) !== 0
    checkPlace(stream === 0, !isAck || at === end)
    if (isAck) {
      this.#floods.countIdle()
      return
    }
    this.#floods.countCostly('settings')
    readSettings(bytes, at, end, (setting, value) => {
      if (setting === INITIAL_WINDOW_SIZE) this.#messages.streams.onInitialWindow(value)
      else if (setting === HEADER_TABLE_SIZE) this.#writer.encoder.resize(value)
      else if (setting === ENABLE_PUSH) this.#events.onEnablePush?.(value)
      else this.#events.onMaxStreams?.(value)
    })
    this.#writer.settingsAck()
  }

  #onPing(flags: number, bytes: Buffer, at: number, end: number): void {
    const isReply = (flags & ACK) !== 0
    this.#events.onPing(isReply)
    if (!isReply) this.#writer.pingAck(bytes, at, end)
  }
}

function checkPlace(isOnItsStream: boolean, hasItsSize: boolean): void {
  if (!isOnItsStream) throw new ConnectionError(PROTOCOL_ERROR, 'a frame on the wrong stream')
  if (!hasItsSize) throw new ConnectionError(FRAME_SIZE_ERROR, 'a frame of the wrong size')
}
