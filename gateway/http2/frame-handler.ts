/** What the frames of a client mean for its connection (RFC 9113 section 6); those of requests go to the streams. */
import { MAX_TRAILER_FIELDS, MAX_TRAILERS } from '../http1/trailers.js'
import { ConnectionError, StreamError } from './errors.js'
import type { FloodLimits } from './flood.js'
import { type FrameSink, uint32At } from './frame-reader.js'
import type { FrameWriter } from './frame-writer.js'
import { type HeaderBlock, HeaderBlocks } from './header-block.js'
import { CompressionError } from './hpack/compression-error.js'
import { HeaderDecoder } from './hpack/decoder.js'
import {
  ACK,
  COMPRESSION_ERROR,
  CONTINUATION,
  END_STREAM,
  FRAME_SIZE_ERROR,
  GOAWAY,
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
import { MAX_LIST } from './server/request-head.js'
import type { ServerStreams } from './server/streams.js'
import type { Uploads } from './server/uploads.js'
import { readSettings } from './settings.js'

const TRAILER_LIMITS = { fields: MAX_TRAILER_FIELDS, bytes: MAX_TRAILERS }

export interface ConnectionEvents {
  /** The client has asked for a sign of life. */
  onPing(): void
  /** The client will send no further requests. */
  onGoaway(): void
}

export class FrameHandler implements FrameSink {
  readonly #writer: FrameWriter
  readonly #floods: FloodLimits
  readonly #streams: ServerStreams
  readonly #uploads: Uploads
  readonly #events: ConnectionEvents
  readonly #decoder = new HeaderDecoder()
  readonly #blocks = new HeaderBlocks()
  /** The stream of the current DATA frame. */
  #dataStream = 0
  /** The client's first frame, SETTINGS, has come. */
  #hasSettings = false

  constructor(
    writer: FrameWriter,
    floods: FloodLimits,
    streams: ServerStreams,
    uploads: Uploads,
    events: ConnectionEvents,
  ) {
    this.#writer = writer
    this.#floods = floods
    this.#streams = streams
    this.#uploads = uploads
    this.#events = events
  }

  /** True while a header block has arrived in part. */
  get isWithinHead(): boolean {
    return this.#blocks.isOpen
  }

  onFrame(type: number, flags: number, stream: number, bytes: Buffer, at: number, end: number): void {
    try {
      this.#handle(type, flags, stream, bytes, at, end)
    } catch (error) {
      this.#onError(stream, error)
    }
  }

  onData(flags: number, stream: number, length: number, content: number): void {
    this.#dataStream = stream
    try {
      this.#checkOrder()
      checkPlace(stream !== 0, true)
      const endsStream = (flags & END_STREAM) !== 0
      if (content === 0 && !endsStream) this.#floods.countIdle()
      this.#uploads.onData(stream, length, content, endsStream)
    } catch (error) {
      this.#onError(stream, error)
    }
  }

  onContent(bytes: Buffer): void {
    this.#uploads.onContent(bytes)
  }

  onDataEnd(): void {
    try {
      this.#uploads.onDataEnd()
    } catch (error) {
      this.#onError(this.#dataStream, error)
    }
  }

  #handle(type: number, flags: number, stream: number, bytes: Buffer, at: number, end: number): void {
    this.#checkOrder(type, flags)
    const length = end - at
    switch (type) {
      case HEADERS:
        if (stream % 2 === 0) throw new ConnectionError(PROTOCOL_ERROR, 'a stream that a client cannot open')
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
        this.#streams.onReset(stream)
        break
      case SETTINGS:
        this.#onSettings(flags, stream, bytes, at, end)
        break
      case PUSH_PROMISE:
        throw new ConnectionError(PROTOCOL_ERROR, 'PUSH_PROMISE from a client')
      case PING:
        checkPlace(stream === 0, length === 8)
        this.#onPing(flags, bytes, at, end)
        break
      case GOAWAY:
        checkPlace(stream === 0, length >= 8)
        this.#events.onGoaway()
        break
      case WINDOW_UPDATE:
        checkPlace(true, length === 4)
        this.#floods.countIdle()
        this.#streams.onWindowUpdate(stream, uint32At(bytes, at) & MAX_31_BITS)
        break
      default:
        this.#floods.countIdle()
    }
  }

  #onError(stream: number, error: unknown): void {
    if (!(error instanceof StreamError)) throw error
    this.#streams.onMalformed(stream, error.code)
  }

  /** SETTINGS comes first (RFC 9113 section 3.4); nothing comes between the frames of a header block. */
  #checkOrder(type?: number, flags = 0): void {
    if (!this.#hasSettings) {
      if (type !== SETTINGS || (flags & ACK) !== 0) {
        throw new ConnectionError(PROTOCOL_ERROR, 'a frame before SETTINGS')
      }
      this.#hasSettings = true
    }
    if (this.#blocks.isOpen && type !== CONTINUATION) {
      throw new ConnectionError(PROTOCOL_ERROR, 'a frame within a header block')
    }
  }

  #onBlock(block: HeaderBlock | undefined): void {
    if (block === undefined) return
    const { stream, bytes, endsStream, dependsOnItself } = block
    const open = this.#streams.get(stream)
    // In any case, because the tables of both sides must remain equal.
    const list = this.#decode(bytes, open !== undefined)
    if (dependsOnItself) throw new StreamError(PROTOCOL_ERROR, 'a stream that depends on itself')
    if (open === undefined) this.#streams.onHead(stream, list, endsStream)
    else this.#uploads.onTrailers(open, list, endsStream)
  }

  #decode(bytes: Buffer, isTrailers: boolean): ReturnType<HeaderDecoder['decode']> {
    try {
      return this.#decoder.decode(bytes, isTrailers ? TRAILER_LIMITS : MAX_LIST)
    } catch (error) {
      if (!(error instanceof CompressionError)) throw error
      throw new ConnectionError(COMPRESSION_ERROR, error.message)
    }
  }

  /** Priorities are not followed (RFC 9113 section 5.3.2). */
  #onPriority(stream: number, length: number, bytes: Buffer, at: number): void {
    checkPlace(stream !== 0, true)
    this.#floods.countIdle()
    if (length !== 5) throw new StreamError(FRAME_SIZE_ERROR, 'a priority of the wrong size')
    if ((uint32At(bytes, at) & MAX_31_BITS) === stream) {
      throw new StreamError(PROTOCOL_ERROR, 'a stream that depends on itself')
    }
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
      if (setting === INITIAL_WINDOW_SIZE) this.#streams.onInitialWindow(value)
      else this.#writer.encoder.resize(value)
    })
    this.#writer.settingsAck()
  }

  #onPing(flags: number, bytes: Buffer, at: number, end: number): void {
    this.#floods.countCostly('pings')
    if ((flags & ACK) !== 0) return
    this.#writer.pingAck(bytes, at, end)
    this.#events.onPing()
  }
}

function checkPlace(isOnItsStream: boolean, hasItsSize: boolean): void {
  if (!isOnItsStream) throw new ConnectionError(PROTOCOL_ERROR, 'a frame on the wrong stream')
  if (!hasItsSize) throw new ConnectionError(FRAME_SIZE_ERROR, 'a frame of the wrong size')
}
