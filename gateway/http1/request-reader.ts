import type { Socket } from 'node:net'
import { requestFraming } from './framing.js'
import { HeadBuffer } from './head-buffer.js'
import type { Framing, ParsedRequest } from './message.js'
import type { RequestBody } from './request-body.js'
import { parseRequestHead } from './request-head.js'
import type { Stalled, Stalls } from './stalls.js'
import { UnreadBytes } from './unread-bytes.js'

/** The connection whose requests are read. */
export interface RequestSink extends Stalled {
  /** True while no request is in progress. */
  readonly isFree: boolean
  /** The first bytes of a head have arrived, but not all of it. */
  onHeadBegun(): void
  /** A whole head has arrived. If there is a body, the sink must set `body` of the reader. */
  onRequest(head: ParsedRequest, framing: Framing): void
  /** The bytes are not a valid request or body, or a handler threw. */
  onBroken(error: unknown): void
  /** The client has closed its side, and everything it sent has been read. */
  onLastByte(): void
}

/** An unread body up to this size is read and dropped, so that the connection can be kept. */
const MOST_DROPPED = 64 * 1024

/** Most requests taken in a row before other connections get a turn, since some are answered synchronously. */
const MOST_IN_A_ROW = 64

/** Reads the requests of a connection, one at a time; bytes that cannot be handled yet are kept. */
export class RequestReader {
  /** The body of the current or the previous request, until all of it has arrived. */
  body: RequestBody | undefined
  /** No further bytes are accepted. */
  stopped = false
  readonly #sink: RequestSink
  readonly #head: HeadBuffer
  readonly #unread: UnreadBytes
  readonly #stalls: Stalls
  /** Too much was sent behind the request in progress. */
  #isAhead = false
  /** The client has closed its side. */
  #isHalfOpen = false
  #running = false
  /** Requests taken since other connections last had a turn. */
  #inARow = 0
  #rests = false

  constructor(socket: Socket, maxHead: number, stalls: Stalls, sink: RequestSink) {
    this.#sink = sink
    this.#head = new HeadBuffer(maxHead)
    this.#unread = new UnreadBytes(socket)
    this.#stalls = stalls
  }

  /** True while a head has begun that is not complete. */
  get hasBegun(): boolean {
    return this.#head.begun
  }

  /** True when the client has closed its side, and everything it sent has been read. */
  get isOver(): boolean {
    return this.#isHalfOpen && this.#unread.isEmpty
  }

  add(chunk: Buffer): void {
    if (this.stopped) return
    this.#unread.add(chunk)
    this.run()
  }

  end(): void {
    if (this.stopped) return
    this.#isHalfOpen = true
    this.run()
  }

  /** Handles the bytes received so far, as far as possible now. */
  run(): void {
    if (this.#running) return
    const unread = this.#unread
    if (this.#rests) {
      unread.steer()
      return
    }
    this.#running = true
    this.#inARow = 0
    while (!unread.isEmpty && this.#reads) this.#take(unread.shift())
    this.#running = false
    if (this.stopped) return
    if (this.#inARow >= MOST_IN_A_ROW) this.#rest()
    if (this.isOver) this.#sink.onLastByte()
    else unread.steer()
    if (unread.isFull || this.#isAhead) this.#countAhead()
  }

  /**
   * True when the rest of the body can be read and dropped, so that the connection can be kept. A body without a reader
   * is dropped from here on.
   */
  dropBody(): boolean {
    const { body } = this
    if (body === undefined) return true
    if (body.awaits100) return false
    if (!body.begun) {
      // Often all of it has already arrived.
      body.drop()
      while (!this.#unread.isEmpty && body.flows) this.#take(this.#unread.shift())
      this.#unread.steer()
    }
    return body.complete || (!body.aborted && body.length !== undefined && body.length <= MOST_DROPPED)
  }

  /** Stops for good; returns the unread bytes. */
  stop(): Buffer {
    this.stopped = true
    const rest = this.#unread.takeAll()
    this.#unread.steer()
    if (this.#isAhead) this.#countAhead()
    return rest
  }

  get #reads(): boolean {
    if (this.stopped) return false
    if (this.body !== undefined) return this.body.flows
    return this.#sink.isFree && this.#inARow < MOST_IN_A_ROW
  }

  /** What follows the request in progress takes memory until that is answered; a body has its own limits. */
  #countAhead(): void {
    const isAhead = this.#unread.isFull && this.body === undefined && !this.#sink.isFree
    if (isAhead === this.#isAhead) return
    this.#isAhead = isAhead
    if (isAhead) this.#stalls.begin(this.#sink)
    else this.#stalls.end(this.#sink)
  }

  #rest(): void {
    this.#rests = true
    setImmediate(() => {
      this.#rests = false
      this.run()
    })
  }

  #take(chunk: Buffer): void {
    try {
      if (this.body === undefined) this.#takeHead(chunk)
      else this.#unread.putBack(this.body.push(chunk))
    } catch (error) {
      this.#sink.onBroken(error)
    }
  }

  #takeHead(chunk: Buffer): void {
    const isFirst = !this.#head.begun
    const gathered = this.#head.add(chunk)
    if (gathered !== undefined) {
      this.#unread.putBack(gathered.rest)
      this.#inARow += 1
      const head = parseRequestHead(gathered.head)
      this.#sink.onRequest(head, requestFraming(head))
    } else if (isFirst && this.#head.begun) this.#sink.onHeadBegun()
  }
}
