/** The streams of a connection: from the frames of a client to requests, and how they end (RFC 9113 section 5). */
import type { Deadlines } from '../../http1/deadlines.js'
import { ContentReceiver } from '../content-receiver.js'
import { ConnectionError, floodError, StreamError } from '../errors.js'
import { TRAILER_LIMITS } from '../field-rules.js'
import type { FloodLimits } from '../flood.js'
import type { Messages } from '../frame-handler.js'
import type { FrameWriter } from '../frame-writer.js'
import type { BlockLimits, DecodedBlock } from '../hpack/decoder.js'
import { MAX_STREAMS } from '../limits.js'
import { ENHANCE_YOUR_CALM, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, STREAM_CLOSED } from '../protocol.js'
import { StreamSet } from '../stream-set.js'
import { CONNECTION_WINDOW } from './limits.js'
import { MAX_LIST, requestParts } from './request-head.js'
import { ServerStream, type StreamOwner } from './stream.js'

/** The limits of one client on all its connections. */
export interface ClientLimits {
  /** True for a trusted proxy: what one of its clients cancels must not end the requests of the others. */
  readonly carriesMany: boolean
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
  /** A handler threw; the response to its request has been cut. */
  failed(error: unknown): void
}

export class ServerStreams implements StreamOwner, Messages<ServerStream> {
  readonly streams: StreamSet<ServerStream>
  readonly content: ContentReceiver<ServerStream>
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
  /** Requests of the current read, which begin when it has been parsed: one that is reset in it costs little. */
  #arrived: ServerStream[] = []

  constructor(writer: FrameWriter, floods: FloodLimits, settings: StreamSettings) {
    this.writer = writer
    this.streams = new StreamSet(writer)
    this.content = new ContentReceiver(writer, this.streams, CONNECTION_WINDOW)
    this.#floods = floods
    this.#settings = settings
    this.deadlines = settings.deadlines
    this.requestTimeoutMs = settings.requestTimeoutMs
    this.keepAliveMs = settings.keepAliveMs
  }

  /** The last stream whose request was begun, or will be when this read has been parsed. */
  get lastAccepted(): number {
    return this.#arrived.at(-1)?.id ?? this.lastBegun
  }

  limitsOf(id: number): BlockLimits {
    return this.streams.get(id) === undefined ? MAX_LIST : TRAILER_LIMITS
  }

  onHeaders(id: number, block: DecodedBlock, endsStream: boolean): void {
    if (id % 2 === 0) throw new ConnectionError(PROTOCOL_ERROR, 'a stream that a client cannot open')
    const open = this.streams.get(id)
    if (open === undefined) this.#onHead(id, block, endsStream)
    else this.content.onTrailers(open, block, endsStream)
  }

  /** The head of a request. @throws {ConnectionError} @throws {StreamError} */
  #onHead(id: number, { fields, isWhole }: DecodedBlock, endsStream: boolean): void {
    if (id <= this.streams.last) {
      if (!this.streams.wasReset(id)) throw new ConnectionError(STREAM_CLOSED, 'HEADERS on a closed stream')
      this.#floods.countIdle()
      return
    }
    this.streams.last = id
    if (this.isClosing) this.#floods.countIdle()
    else if (this.streams.count >= MAX_STREAMS) {
      this.#floods.countCostly('streams')
      this.streams.reset(id, REFUSED_STREAM)
    } else {
      if (!isWhole) throw new StreamError(ENHANCE_YOUR_CALM, 'too large a head')
      const parts = requestParts(fields)
      if (endsStream && (parts.length ?? 0) > 0)
        throw new StreamError(PROTOCOL_ERROR, 'a length without content')
      const stream = new ServerStream(id, parts, !endsStream, this.streams.initialWindow, this)
      this.streams.add(stream)
      this.#arrived.push(stream)
    }
  }

  onReset(id: number): void {
    this.streams.checkNotIdle(id)
    const stream = this.streams.get(id)
    if (stream === undefined) this.#floods.countIdle()
    else {
      this.#countReset()
      this.#remove(stream)
      stream.close()
    }
  }

  /**
   * Every reset that a client causes by something malformed comes here. It costs the client as little as a reset of its own,
   * and so counts as one (CVE-2025-8671). @throws {ConnectionError}
   */
  onMalformed(id: number, { code }: StreamError): void {
    this.#countReset()
    this.streams.reset(id, code)
    const stream = this.streams.get(id)
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

  /** Ends all streams: the connection is over. */
  closeAll(): void {
    for (const stream of this.streams.all()) {
      this.#forget(stream)
      stream.close()
    }
  }

  send(stream: ServerStream): void {
    this.streams.send(stream)
  }

  onConsumed(stream: ServerStream, bytes: number): void {
    this.content.onConsumed(stream, bytes)
  }

  onFailed(stream: ServerStream, error: unknown): void {
    stream.response.cut()
    this.#settings.failed(error)
  }

  onAnswered(stream: ServerStream): void {
    // The client may stop its upload (RFC 9113 section 8.1).
    if (stream.isUploading) this.streams.reset(stream.id, NO_ERROR)
    this.#remove(stream)
    stream.close()
  }

  reset(stream: ServerStream, code: number): void {
    this.streams.reset(stream.id, code)
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

  #countReset(): void {
    const { client } = this.#settings
    if (client.carriesMany) return
    this.#floods.countCostly('resets')
    if (!client.countReset()) throw floodError('resets')
  }

  #remove(stream: ServerStream): void {
    if (!this.#forget(stream)) return
    if (this.streams.count === 0) this.#settings.onEmpty()
  }

  /** False if the stream was not open. */
  #forget(stream: ServerStream): boolean {
    stream.closed = true
    if (stream.places > 0) this.#settings.client.giveBack(stream.places)
    stream.places = 0
    return this.streams.delete(stream)
  }
}
