import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Timed } from '../../http1/deadlines.js'
import { closeLingering } from '../../http1/lingering-close.js'
import type { Peer } from '../../message.js'
import { ConnectionError, floodError } from '../errors.js'
import { FloodLimits } from '../flood.js'
import { FrameHandler } from '../frame-handler.js'
import { FrameReader } from '../frame-reader.js'
import { FrameWriter } from '../frame-writer.js'
import { HeadLimit } from '../head-limit.js'
import { LOOK_MS } from '../limits.js'
import { Liveness } from '../liveness.js'
import { Output } from '../output.js'
import { MAX_31_BITS, NO_ERROR, PROTOCOL_ERROR } from '../protocol.js'
import type { Http2ServerConnections } from './connections.js'
import { LAST_CHANCE_MS, SERVER_SETTINGS } from './limits.js'
import type { ServerStream } from './stream.js'
import { type ClientLimits, ServerStreams } from './streams.js'

/** A client's connection, from its first byte to its last. */
export class Http2ServerConnection implements Timed {
  deadline: number
  readonly #socket: Socket
  readonly #peer: Peer
  readonly #all: Http2ServerConnections
  readonly #output: Output
  readonly #writer: FrameWriter
  readonly #streams: ServerStreams
  readonly #handler: FrameHandler<ServerStream>
  readonly #reader: FrameReader
  /** When an idle connection ends. */
  #idleEnds: number
  readonly #headLimit: HeadLimit
  readonly #liveness: Liveness
  /** The client was told that the connection will end, but requests on their way are still accepted. */
  #isLeaving = false
  #isOver = false

  constructor(socket: Socket, peer: Peer, client: ClientLimits, all: Http2ServerConnections) {
    const { deadlines, settings } = all
    const floods = new FloodLimits()
    this.#socket = socket
    this.#peer = peer
    this.#all = all
    this.#output = new Output(socket, {
      onRoom: () => this.#streams.streams.onRoom(),
      onUnread: () => this.#onUnread(),
    })
    this.#writer = new FrameWriter(this.#output, floods)
    this.#streams = new ServerStreams(this.#writer, floods, {
      deadlines,
      requestTimeoutMs: settings.requestTimeoutMs,
      keepAliveMs: settings.keepAliveMs,
      client,
      begin: stream => this.#begin(stream),
      onEmpty: () => this.#onIdle(),
      failed: error => all.handlers.failed?.(error),
    })
    this.#handler = new FrameHandler(this.#writer, floods, this.#streams, {
      onPing: isReply => this.#onPing(floods, isReply),
      onGoaway: () => this.#leaveNow(NO_ERROR),
    })
    this.#reader = new FrameReader(this.#handler, true)
    const now = deadlines.now()
    this.#liveness = new Liveness(now)
    this.#headLimit = new HeadLimit(settings.headTimeoutMs)
    this.#idleEnds = now + settings.headTimeoutMs
    this.deadline = this.#idleEnds
    socket.on('data', this.#onData).on('end', this.#onEnd)
    // `close` follows an error, and does the work.
    socket.on('close', this.#onClose).on('error', () => {})
    this.#writer.settings(SERVER_SETTINGS)
    this.#streams.content.announce()
  }

  /** Closes the connection; only while no request is in progress. */
  closeIdle(): void {
    this.#leaveNow(NO_ERROR)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Lets requests finish, also those that the client has sent before it knows (RFC 9113 section 6.8). */
  drain(): void {
    if (this.#isOver || this.#isLeaving) return
    this.#isLeaving = true
    this.#writer.goaway(MAX_31_BITS, NO_ERROR)
    this.#idleEnds = this.#all.deadlines.now() + LAST_CHANCE_MS
    this.deadline = this.#idleEnds
  }

  onDeadline(): void {
    const now = this.#all.deadlines.now()
    const { stalledSince = now } = this.#output
    const next = this.#liveness.look(now)
    // A write is at most 64 KiB, so 1 KB/s is fast enough.
    const isStalled = now - stalledSince >= this.#all.settings.keepAliveMs
    if (next === 'give-up' || isStalled) this.#socket.destroy()
    else if (now >= this.#headLimit.ends)
      this.#fail(new ConnectionError(PROTOCOL_ERROR, 'a head took too long'))
    else if (this.#isLeaving && !this.#streams.isClosing && now >= this.#idleEnds) this.#leaveNow(NO_ERROR)
    else if (this.#streams.streams.count > 0) this.#look(now, next === 'ask')
    else if (now >= this.#idleEnds) this.#leaveNow(NO_ERROR)
    else this.deadline = Math.min(this.#idleEnds, this.#headLimit.ends)
  }

  /** A connection in use is looked at now and then: its client may be gone without a trace. */
  #look(now: number, asks: boolean): void {
    this.deadline = Math.min(now + LOOK_MS, this.#headLimit.ends)
    if (this.#isLeaving) this.deadline = Math.min(this.deadline, this.#idleEnds)
    if (!asks) return
    this.#liveness.onAsked()
    this.#writer.ping()
  }

  #begin(stream: ServerStream): void {
    const { parts, body, response } = stream
    if (this.#all.busy(this)) this.deadline = Math.min(this.deadline, this.#all.deadlines.now() + LOOK_MS)
    const { method, target, fields } = parts
    this.#all.handlers.request(
      {
        id: randomUUID(),
        method,
        target,
        version: '2.0',
        fields,
        // WebSocket over HTTP/2 (RFC 8441) is not offered, so clients do not request it.
        upgrade: false,
        peer: this.#peer,
        body,
      },
      response,
    )
  }

  /** The last request has ended. */
  #onIdle(): void {
    if (this.#isOver) return
    if (this.#streams.isClosing) this.#finish()
    else if (!this.#isLeaving) {
      this.#all.idle(this)
      this.#idleEnds = this.#all.deadlines.now() + this.#all.settings.keepAliveMs
      this.deadline = Math.min(this.#idleEnds, this.#headLimit.ends)
    }
  }

  #onPing(floods: FloodLimits, isReply: boolean): void {
    if (isReply) floods.countCostly('pings')
    else floods.countPing()
    if (isReply || this.#streams.streams.count > 0 || this.#isLeaving || this.#streams.lastBegun === 0) return
    this.#idleEnds = this.#all.deadlines.now() + this.#all.settings.keepAliveMs
  }

  /** Accepts no further requests, and ends with the last one. */
  #leaveNow(code: number): void {
    if (this.#isOver || this.#streams.isClosing) return
    this.#streams.isClosing = true
    this.#writer.goaway(this.#streams.lastAccepted, code)
    if (this.#streams.streams.count === 0) this.#finish()
    else this.deadline = this.#all.deadlines.now() + LOOK_MS
  }

  /** Ends the connection because of an error of the client. */
  #fail(error: ConnectionError): void {
    if (this.#isOver) return
    if (error.flood !== undefined) this.#all.handlers.flooded?.(error.flood)
    this.#writer.goaway(this.#streams.lastBegun, error.code)
    this.#finish()
    this.#streams.closeAll()
  }

  /** Sends what is left, and closes. */
  #finish(): void {
    this.#isOver = true
    this.deadline = Number.POSITIVE_INFINITY
    this.#reader.stop()
    this.#all.busy(this)
    this.#socket.off('data', this.#onData).off('end', this.#onEnd)
    this.#output.finish()
    closeLingering(this.#socket)
  }

  /** Called while frames are written, so nothing may be reported at once: `close` of the socket does it. */
  #onUnread(): void {
    const { flood } = floodError('unread-replies')
    if (flood !== undefined) this.#all.handlers.flooded?.(flood)
    this.#socket.destroy()
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#liveness.onSeen()
    try {
      this.#reader.push(bytes)
      this.#streams.onReadEnd()
      this.#streams.content.onReadEnd()
      this.#headLimit.onReadEnd(this.#handler.partOf(this.#reader.isWithinFrame), this.#all.deadlines.now())
      this.deadline = Math.min(this.deadline, this.#headLimit.ends)
    } catch (error) {
      if (error instanceof ConnectionError) this.#fail(error)
      else {
        this.#socket.destroy()
        this.#all.handlers.failed?.(error)
      }
    }
  }

  /** A client that closes its side while requests are in progress counts as gone, as in HTTP/1.1. */
  readonly #onEnd = (): void => {
    if (this.#streams.streams.count > 0) this.#socket.destroy()
    else this.#leaveNow(NO_ERROR)
  }

  readonly #onClose = (): void => {
    this.#isOver = true
    this.#reader.stop()
    this.#output.close()
    this.#all.closed(this)
    this.#streams.closeAll()
  }
}
