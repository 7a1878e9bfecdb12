import type { Socket } from 'node:net'
import type { Connector, SocketReader } from '../../http1/connector.js'
import type { Deadlines, Timed } from '../../http1/deadlines.js'
import { closeLingering } from '../../http1/lingering-close.js'
import type { ConnectionFault, ResponseHandler, WaitingTimes } from '../../outgoing-request.js'
import { errorName } from '../error-names.js'
import { ConnectionError } from '../errors.js'
import { FloodLimits } from '../flood.js'
import { FrameHandler } from '../frame-handler.js'
import { FrameReader } from '../frame-reader.js'
import { FrameWriter } from '../frame-writer.js'
import { HeadLimit } from '../head-limit.js'
import { LOOK_MS, MAX_STREAMS } from '../limits.js'
import { Liveness } from '../liveness.js'
import { Output } from '../output.js'
import { NO_ERROR, PREFACE, PROTOCOL_ERROR } from '../protocol.js'
import type { Http2ConnectionOwner } from './connection-owner.js'
import { CLIENT_SETTINGS, MOST_IDLE_FRAMES } from './limits.js'
import { Opening } from './opening.js'
import type { Scheme } from './request-fields.js'
import type { ClientStream } from './stream.js'
import { ClientStreams, type ClientStreamsOwner } from './streams.js'

/** One connection to an upstream, and the requests that it carries side by side. */
export class Http2ClientConnection implements ClientStreamsOwner, SocketReader, Timed {
  deadline: number
  /** How many requests the upstream allows at a time, and at most MAX_STREAMS. */
  maxStreams = MAX_STREAMS
  readonly deadlines: Deadlines
  readonly times: WaitingTimes
  readonly scheme: Scheme
  readonly #owner: Http2ConnectionOwner
  readonly #socket: Socket
  readonly #output: Output
  readonly #writer: FrameWriter
  readonly #messages: ClientStreams
  readonly #handler: FrameHandler<ClientStream>
  readonly #reader: FrameReader
  readonly #liveness: Liveness
  readonly #headLimit: HeadLimit
  /** Until the upstream's SETTINGS have come. */
  #opening: Opening | undefined
  #isLeaving = false
  #isOver = false
  /** When the upstream was last heard, or the connection opened. */
  #heardAt = Number.POSITIVE_INFINITY
  /** Why the upstream ends the connection, if it has said so. */
  #reason: Error | undefined

  constructor(owner: Http2ConnectionOwner, connector: Connector) {
    const { deadlines, times } = owner
    const floods = new FloodLimits(MOST_IDLE_FRAMES)
    this.#owner = owner
    this.deadlines = deadlines
    this.times = times
    this.scheme = owner.scheme
    this.#socket = connector.connect(this)
    this.#opening = new Opening(this.#socket, times.connectMs)
    this.#output = new Output(this.#socket, {
      onRoom: () => this.#messages.streams.onRoom(),
      // Called while frames are written: `onGone` reports it.
      onUnread: () => this.#socket.destroy(new Error('the upstream reads no replies')),
    })
    this.#writer = new FrameWriter(this.#output, floods)
    this.#messages = new ClientStreams(this, this.#writer, floods)
    this.#handler = new FrameHandler(this.#writer, floods, this.#messages, {
      onPing: () => floods.countIdle(),
      onGoaway: (lastStream, code) => this.#onGoaway(lastStream, code),
      onEnablePush: value => {
        // RFC 9113 section 6.5.2
        if (value === 1) throw new ConnectionError(PROTOCOL_ERROR, 'ENABLE_PUSH of an upstream')
      },
      onMaxStreams: value => {
        this.maxStreams = Math.min(value, MAX_STREAMS)
      },
    })
    this.#reader = new FrameReader(this.#handler, false)
    const now = deadlines.now()
    this.#liveness = new Liveness(now)
    this.#headLimit = new HeadLimit(times.headMs)
    this.deadline = now + times.connectMs
    deadlines.add(this)
  }

  /** True if it can carry another request now. */
  get hasRoom(): boolean {
    return this.takesRequests && this.#messages.places < this.maxStreams && !this.#messages.isWornOut
  }

  /** Gives `handler` a place; only while there is room. */
  take(handler: ResponseHandler): void {
    this.#messages.take(handler)
  }

  /** Closes the connection and reports a fault of all its requests. */
  cut(): void {
    this.#end('gone', new Error('the connection was closed here'))
  }

  get takesRequests(): boolean {
    return !this.#isLeaving && !this.#isOver
  }

  onBusy(): void {
    this.deadline = this.deadlines.now() + LOOK_MS
  }

  onSilent(): void {
    const { headMs, idleMs } = this.times
    // Of the whole connection nothing was heard for so long, so it may be dead: no more requests are risked on it.
    if (this.deadlines.now() - this.#heardAt >= Math.min(headMs, idleMs)) this.#leave()
  }

  onPlaceFree(): void {
    if (this.#isOver) return
    if (this.#messages.places === 0) this.#rest()
    this.#onRoom()
  }

  onOpen(): void {
    if (this.#isOver) return
    const error = this.#opening?.begin()
    if (error !== undefined) {
      this.onGone(error)
      return
    }
    this.#output.preface(PREFACE)
    this.#writer.settings(CLIENT_SETTINGS)
    this.#messages.content.announce()
  }

  onBytes(bytes: Buffer): void {
    if (this.#isOver) return
    this.#heardAt = this.deadlines.now()
    this.#liveness.onSeen()
    const allowed = this.maxStreams
    try {
      try {
        this.#reader.push(this.#opening?.read(bytes) ?? bytes)
      } finally {
        // Responses that were whole before an error are whole.
        this.#messages.content.onReadEnd()
      }
      if (this.#isOver) return
      if (this.#opening !== undefined) {
        if (this.#handler.hasSettings) this.#onSettings(this.#opening)
        return
      }
      if (this.maxStreams !== allowed) this.#onRoom()
      this.#headLimit.onReadEnd(this.#handler.partOf(this.#reader.isWithinFrame), this.#heardAt)
      this.deadline = Math.min(this.deadline, this.#headLimit.ends)
    } catch (error) {
      const code = error instanceof ConnectionError ? error.code : PROTOCOL_ERROR
      this.#end('invalid', error as Error, code)
    }
  }

  onFin(): void {
    const error = this.#opening?.onFin() ?? new Error('the upstream closed the connection')
    this.#end('gone', this.#reason ?? error)
  }

  /** Writes report their own ends. */
  onDrain(): void {}

  onGone(error: NodeJS.ErrnoException): void {
    if (this.#isOver) return
    this.#end('gone', this.#reason ?? this.#opening?.onGone(error) ?? error)
  }

  onDeadline(): void {
    const now = this.deadlines.now()
    const { stalledSince = now } = this.#output
    const next = this.#liveness.look(now)
    if (this.#opening !== undefined) this.onGone(this.#opening.onLate())
    else if (now >= this.#headLimit.ends) {
      this.#end('invalid', new Error('a head took too long'), PROTOCOL_ERROR)
    } else if (next === 'give-up' || now - stalledSince >= this.times.headMs) {
      this.#end('silent', new Error('the upstream is gone, or reads nothing'))
    } else if (this.#messages.places === 0) {
      this.#end('gone', new Error('the connection was idle'))
    } else {
      this.deadline = Math.min(now + LOOK_MS, this.#headLimit.ends)
      if (next !== 'ask') return
      this.#liveness.onAsked()
      this.#writer.ping()
    }
  }

  /** The SETTINGS of the upstream have come, and what it sent with them. */
  #onSettings(opening: Opening): void {
    const error = opening.onSettings(this.maxStreams)
    if (error !== undefined) {
      this.#end('gone', error)
      return
    }
    this.#opening = undefined
    this.#rest()
    this.#owner.onReady(this)
  }

  /** A place has become free, or the upstream has changed how many there are. */
  #onRoom(): void {
    const { places, isWornOut } = this.#messages
    const takesNone = this.#isLeaving || isWornOut || this.maxStreams === 0
    if (places === 0 && takesNone) this.#end('gone', new Error('the connection has ended'))
    else this.#owner.onRoom(this)
  }

  /** No request is in progress. */
  #rest(): void {
    this.deadline = Math.min(this.deadlines.now() + this.#owner.idleMs, this.#headLimit.ends)
  }

  #onGoaway(lastStream: number, code: number): void {
    const error = new Error(`the upstream ends the connection: ${errorName(code)}`)
    this.#reason = error
    this.#leave()
    this.#messages.refuseAfter(lastStream, error)
    if (this.#messages.places === 0 && !this.#isOver) this.#end('refused', error)
  }

  /** Takes no more requests. */
  #leave(): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    this.#owner.onLeaving(this)
  }

  #end(fault: ConnectionFault, error: Error, code = NO_ERROR): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#leave()
    this.deadlines.delete(this)
    this.#reader.stop()
    if (this.#opening?.begun !== false) this.#writer.goaway(0, code)
    this.#output.finish()
    // Nothing is lost with a connection that has carried no request.
    if (this.#opening === undefined && fault !== 'silent') closeLingering(this.#socket)
    else this.#socket.destroy()
    this.#owner.onClosed(this, fault, error)
    for (const stream of [...this.#messages.streams.all()]) {
      this.#messages.forget(stream)
      if (fault === 'invalid') stream.fail(fault, error, true)
      else stream.fail(fault, error)
    }
  }
}
