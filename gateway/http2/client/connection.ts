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
import { CANCEL, MAX_31_BITS, NO_ERROR, PREFACE, PROTOCOL_ERROR } from '../protocol.js'
import { SendQueue } from '../send-queue.js'
import type { Http2ConnectionOwner } from './connection-owner.js'
import { CLIENT_SETTINGS, MOST_IDLE_FRAMES } from './limits.js'
import {
  connectFault,
  FirstBytes,
  isHttp2Agreed,
  NO_ALPN,
  NO_SETTINGS,
  NO_STREAMS,
} from './other-protocol.js'
import type { Scheme } from './request-fields.js'
import { ClientStream, type ClientStreamOwner } from './stream.js'
import { ClientStreams } from './streams.js'

const NEVER = Number.POSITIVE_INFINITY
/** One connection to an upstream, and the requests that it carries side by side. */
export class Http2ClientConnection implements ClientStreamOwner, SocketReader, Timed {
  deadline: number
  answered = 0
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
  /** Places that are taken, by requests whose response was not yet handed over. */
  #places = 0
  /** Until the upstream's SETTINGS have come. */
  #firstBytes: FirstBytes | undefined = new FirstBytes()
  /** The socket is open. */
  #isOpen = false
  #isLeaving = false
  #isOver = false
  /** When the upstream was last heard, or the connection opened. */
  #heardAt = NEVER
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
    this.#output = new Output(this.#socket, {
      onRoom: () => this.#messages.streams.onRoom(),
      // Called while frames are written: `onGone` reports it.
      onUnread: () => this.#socket.destroy(new Error('the upstream reads no replies')),
    })
    this.#writer = new FrameWriter(this.#output, floods)
    this.#messages = new ClientStreams(this.#writer, floods)
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
    return !this.#isLeaving && !this.#isOver && this.#places < this.maxStreams && !this.#isWornOut
  }

  /** Gives `handler` a place; only while there is room. */
  take(handler: ResponseHandler): void {
    this.#places += 1
    new ClientStream(this).offer(handler)
  }

  /** Closes the connection and reports a fault of all its requests. */
  cut(): void {
    this.#end('gone', new Error('the connection was closed here'))
  }

  open(stream: ClientStream): SendQueue | undefined {
    const { streams } = this.#messages
    if (this.#isOver || this.#isLeaving) return undefined
    streams.last = streams.last === 0 ? 1 : streams.last + 2
    stream.id = streams.last
    streams.add(stream)
    if (this.#places === 1) this.deadline = this.deadlines.now() + LOOK_MS
    return new SendQueue(stream.id, this.#writer, streams.initialWindow)
  }

  send(stream: ClientStream): void {
    this.#messages.streams.send(stream)
  }

  onHead(stream: ClientStream): void {
    this.answered += 1
    this.#messages.content.onHead(stream)
  }

  onConsumed(stream: ClientStream, bytes: number): void {
    this.#messages.content.onConsumed(stream, bytes)
  }

  onBodyless(stream: ClientStream): void {
    this.#messages.content.onBodyless(stream)
  }

  onAnswered(stream: ClientStream): void {
    this.#messages.onAnswered(stream)
  }

  onAborted(stream: ClientStream): void {
    this.#messages.end(stream, CANCEL)
  }

  onSilent(stream: ClientStream): void {
    const { headMs, idleMs } = this.times
    // Of the whole connection nothing was heard for so long, so it may be dead: no more requests are risked on it.
    if (this.deadlines.now() - this.#heardAt >= Math.min(headMs, idleMs)) this.#leave()
    this.#messages.end(stream, CANCEL)
  }

  onReleased(): void {
    this.#onPlaceFree()
  }

  onOpen(): void {
    if (this.#isOver) return
    if (!isHttp2Agreed(this.#socket)) {
      this.onGone(new Error(NO_ALPN))
      return
    }
    this.#isOpen = true
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
        this.#reader.push(this.#firstBytes?.add(bytes) ?? bytes)
      } finally {
        // Responses that were whole before an error are whole.
        this.#messages.content.onReadEnd()
      }
      if (this.#isOver) return
      if (this.#firstBytes !== undefined) {
        if (this.#handler.hasSettings) this.#onReady()
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
    const text = this.#firstBytes === undefined ? 'the upstream closed the connection' : NO_SETTINGS
    this.#end('gone', this.#reason ?? new Error(text))
  }

  /** Writes report their own ends. */
  onDrain(): void {}

  onGone(error: NodeJS.ErrnoException): void {
    if (this.#isOver) return
    this.#end('gone', this.#reason ?? (this.#isOpen ? error : connectFault(error)))
  }

  onDeadline(): void {
    const now = this.deadlines.now()
    const { connectMs, headMs } = this.times
    const { stalledSince = now } = this.#output
    const next = this.#liveness.look(now)
    if (this.#firstBytes !== undefined) {
      const missing = this.#isOpen ? 'no SETTINGS, the beginning of HTTP/2,' : 'no connection'
      this.onGone(Object.assign(new Error(`${missing} within ${connectMs} ms`), { code: 'ETIMEDOUT' }))
    } else if (now >= this.#headLimit.ends) {
      this.#end('invalid', new Error('a head took too long'), PROTOCOL_ERROR)
    } else if (next === 'give-up' || now - stalledSince >= headMs) {
      this.#end('silent', new Error('the upstream is gone, or reads nothing'))
    } else if (this.#places === 0) {
      this.#end('gone', new Error('the connection was idle'))
    } else {
      this.deadline = Math.min(now + LOOK_MS, this.#headLimit.ends)
      if (next !== 'ask') return
      this.#liveness.onAsked()
      this.#writer.ping()
    }
  }

  /** The numbers of streams are nearly used up. */
  get #isWornOut(): boolean {
    return this.#messages.streams.last > MAX_31_BITS - 2 * MAX_STREAMS
  }

  /** The SETTINGS of the upstream have come, and what it sent with them. */
  #onReady(): void {
    if (this.maxStreams === 0) {
      this.#end('gone', new Error(NO_STREAMS))
      return
    }
    this.#firstBytes = undefined
    this.#rest()
    this.#owner.onReady(this)
  }

  #onPlaceFree(): void {
    this.#places -= 1
    if (this.#isOver) return
    if (this.#places === 0) this.#rest()
    this.#onRoom()
  }

  /** A place has become free, or the upstream has changed how many there are. */
  #onRoom(): void {
    const takesNone = this.#isLeaving || this.#isWornOut || this.maxStreams === 0
    if (this.#places === 0 && takesNone) this.#end('gone', new Error('the connection has ended'))
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
    if (this.#places === 0 && !this.#isOver) this.#end('refused', error)
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
    if (this.#isOpen) this.#writer.goaway(0, code)
    this.#output.finish()
    // Nothing is lost with a connection that has carried no request.
    if (this.#firstBytes === undefined && fault !== 'silent') closeLingering(this.#socket)
    else this.#socket.destroy()
    this.#owner.onClosed(this, fault, error)
    for (const stream of [...this.#messages.streams.all()]) {
      this.#messages.forget(stream)
      if (fault === 'invalid') stream.fail(fault, error, true)
      else stream.fail(fault, error)
    }
  }
}
