/** The streams of a connection: from the frames of a client to requests, and how they end (RFC 9113 section 5). */
import type { Deadlines } from '../../http1/deadlines.js'
import { ConnectionError, floodError, StreamError } from '../errors.js'
import type { FloodLimits } from '../flood.js'
import type { FrameWriter } from '../frame-writer.js'
import type { DecodedBlock } from '../hpack/decoder.js'
import { MAX_STREAMS } from '../limits.js'
import {
  DEFAULT_WINDOW,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  MAX_31_BITS,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  STREAM_CLOSED,
} from '../protocol.js'
import { SendOrder } from '../send-order.js'
import { requestParts } from './request-head.js'
import { ServerStream, type StreamOwner } from './stream.js'

/** The limits of one client on all its connections. */
export interface ClientLimits {
  /** Takes the places of a request with so many fields; returns their number, or 0 if there are not enough. */
  take(fields: number): number
  giveBack(places: number): void
  /** Counts a request that the client cancelled, or caused to be reset; false if there were too many. */
  countReset(): boolean
}

export interface StreamSettings {
  readonly deadlines: Deadlines
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  readonly client: ClientLimits
  /** A request has arrived. */
  begin(stream: ServerStream): void
  /** The last open stream has ended. */
  onEmpty(): void
  /** Content of the stream has been read or dropped. */
  onConsumed(stream: ServerStream, bytes: number): void
  /** A handler threw; the response to its request has been cut. */
  failed(error: unknown): void
}

export class ServerStreams implements StreamOwner {
  readonly writer: FrameWriter
  readonly deadlines: Deadlines
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  /** The last stream whose request was begun, or 0. */
  lastBegun = 0
  /** Further requests are not accepted: the client was told so. */
  isClosing = false
  readonly #floods: FloodLimits
  readonly #settings: StreamSettings
  readonly #open = new Map<number, ServerStream>()
  readonly #order = new SendOrder()
  #lastStream = 0
  #initialWindow = DEFAULT_WINDOW
  /** Requests of the current read, which begin when it has been parsed: one that is reset in it costs little. */
  #arrived: ServerStream[] = []
  /** Streams reset from here, of which frames may still arrive (RFC 9113 section 5.1), the latest last. */
  readonly #reset: number[] = []

  constructor(writer: FrameWriter, floods: FloodLimits, settings: StreamSettings) {
    this.writer = writer
    this.#floods = floods
    this.#settings = settings
    this.deadlines = settings.deadlines
    this.requestTimeoutMs = settings.requestTimeoutMs
    this.keepAliveMs = settings.keepAliveMs
  }

  get count(): number {
    return this.#open.size
  }

  get(id: number): ServerStream | undefined {
    return this.#open.get(id)
  }

  /** The head of a request. @throws {ConnectionError} @throws {StreamError} */
  onHead(id: number, { fields, isWhole }: DecodedBlock, endsStream: boolean): void {
    if (id <= this.#lastStream) {
      if (!this.#reset.includes(id)) throw new ConnectionError(STREAM_CLOSED, 'HEADERS on a closed stream')
      this.#floods.countIdle()
      return
    }
    this.#lastStream = id
    if (this.isClosing) this.#floods.countIdle()
    else if (this.#open.size >= MAX_STREAMS) {
      this.#floods.countCostly('streams')
      this.#sendReset(id, REFUSED_STREAM)
    } else {
      if (!isWhole) throw new StreamError(ENHANCE_YOUR_CALM, 'too large a head')
      const parts = requestParts(fields)
      if (endsStream && (parts.length ?? 0) > 0)
        throw new StreamError(PROTOCOL_ERROR, 'a length without content')
      const stream = new ServerStream(id, parts, !endsStream, this.#initialWindow, this)
      this.#open.set(id, stream)
      this.#arrived.push(stream)
    }
  }

  /** A frame has come for a stream that is not open: only one that was reset from here may still get some. */
  checkWasReset(id: number): void {
    this.#checkNotIdle(id)
    if (!this.#reset.includes(id)) throw new StreamError(STREAM_CLOSED, 'a frame on a closed stream')
  }

  /** The client has reset a stream. @throws {ConnectionError} */
  onReset(id: number): void {
    this.#checkNotIdle(id)
    const stream = this.#open.get(id)
    if (stream === undefined) this.#floods.countIdle()
    else {
      this.#countReset()
      this.#remove(stream)
      stream.close()
    }
  }

  /** @throws {ConnectionError} @throws {StreamError} */
  onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      if (increment === 0) throw new ConnectionError(PROTOCOL_ERROR, 'an increment of 0')
      this.writer.window += increment
      if (this.writer.window > MAX_31_BITS)
        throw new ConnectionError(FLOW_CONTROL_ERROR, 'too large a window')
      this.#order.onConnectionWindow()
      return
    }
    this.#checkNotIdle(id)
    const stream = this.#open.get(id)
    if (stream === undefined) return
    if (increment === 0) throw new StreamError(PROTOCOL_ERROR, 'an increment of 0')
    stream.queue.window += increment
    if (stream.queue.window > MAX_31_BITS) throw new StreamError(FLOW_CONTROL_ERROR, 'too large a window')
    if (!stream.queue.isEmpty) this.#order.send(stream)
  }

  /** The client's INITIAL_WINDOW_SIZE, which also changes the windows of open streams. @throws {ConnectionError} */
  onInitialWindow(value: number): void {
    const change = value - this.#initialWindow
    this.#initialWindow = value
    if (change === 0) return
    for (const { queue } of this.#open.values()) {
      queue.window += change
      if (queue.window > MAX_31_BITS) throw new ConnectionError(FLOW_CONTROL_ERROR, 'too large a window')
    }
    if (change > 0)
      for (const stream of this.#open.values()) if (!stream.queue.isEmpty) this.#order.send(stream)
  }

  /**
   * Every reset that a client causes by something malformed comes here. It costs the client as little as a reset of its own,
   * and so counts as one (CVE-2025-8671). @throws {ConnectionError}
   */
  onMalformed(id: number, code: number): void {
    this.#lastStream = Math.max(this.#lastStream, id)
    this.#countReset()
    this.#sendReset(id, code)
    const stream = this.#open.get(id)
    if (stream !== undefined) {
      this.#remove(stream)
      stream.close()
    }
  }

  /** The bytes of a read have been parsed: its requests begin. @throws {ConnectionError} */
  onReadEnd(): void {
    const arrived = this.#arrived
    if (arrived.length === 0) return
    this.#arrived = []
    for (const stream of arrived) if (!stream.closed) this.#begin(stream)
  }

  /** There is room for frames again. */
  onRoom(): void {
    this.#order.run()
  }

  /** Ends all streams: the connection is over. */
  closeAll(): void {
    for (const stream of this.#open.values()) {
      this.#forget(stream)
      stream.close()
    }
    this.#open.clear()
  }

  send(stream: ServerStream): void {
    this.#order.send(stream)
  }

  onConsumed(stream: ServerStream, bytes: number): void {
    this.#settings.onConsumed(stream, bytes)
  }

  onFailed(stream: ServerStream, error: unknown): void {
    stream.response.cut()
    this.#settings.failed(error)
  }

  onAnswered(stream: ServerStream): void {
    // The client may stop its upload (RFC 9113 section 8.1).
    if (stream.isUploading) this.#sendReset(stream.id, NO_ERROR)
    this.#remove(stream)
    stream.close()
  }

  reset(stream: ServerStream, code: number): void {
    this.#sendReset(stream.id, code)
    this.#remove(stream)
  }

  #begin(stream: ServerStream): void {
    const places = this.#settings.client.take(stream.parts.fields.names.length)
    if (places === 0) {
      this.#floods.countIdle()
      this.reset(stream, REFUSED_STREAM)
      stream.close()
    } else {
      stream.places = places
      this.lastBegun = stream.id
      try {
        this.#settings.begin(stream)
      } catch (error) {
        this.onFailed(stream, error)
      }
    }
  }

  #checkNotIdle(id: number): void {
    if (id > this.#lastStream) throw new ConnectionError(PROTOCOL_ERROR, 'a frame on an idle stream')
  }

  #countReset(): void {
    this.#floods.countCostly('resets')
    if (!this.#settings.client.countReset()) throw floodError('resets')
  }

  #sendReset(id: number, code: number): void {
    this.writer.reset(id, code)
    this.#reset.push(id)
    if (this.#reset.length > MAX_STREAMS) this.#reset.shift()
  }

  #remove(stream: ServerStream): void {
    if (!this.#open.delete(stream.id)) return
    this.#forget(stream)
    if (this.#open.size === 0) this.#settings.onEmpty()
  }

  #forget(stream: ServerStream): void {
    stream.closed = true
    this.#order.delete(stream)
    if (stream.places > 0) this.#settings.client.giveBack(stream.places)
    stream.places = 0
  }
}
