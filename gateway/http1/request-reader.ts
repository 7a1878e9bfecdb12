import type { Socket } from 'node:net'
import { requestFraming } from './framing.js'
import { HeadBuffer } from './head-buffer.js'
import type { Framing, ParsedRequest } from './message.js'
import type { RequestBody } from './request-body.js'
import { parseRequestHead } from './request-head.js'
import { UnreadBytes } from './unread-bytes.js'

/** The connection whose bytes are read. */
export interface RequestSink {
  /** True while no request is under way. */
  readonly isFree: boolean
  /** A first byte of a head has come, but not all of it. */
  onHeadBegun(): void
  /** Where a body follows, it is the reader's `body` from then on. */
  onRequest(head: ParsedRequest, framing: Framing): void
  /** What came is no request, or no body; or somebody who was given it threw. */
  onBroken(error: unknown): void
  /** The client has ended its side, and all it sent is read. */
  onLastByte(): void
}

/** Of a body that nobody wants, so much is read, so that the connection can go on. */
const MOST_DROPPED = 64 * 1024

/** So many requests are taken in a row: some are answered at once, and others than this client wait meanwhile. */
const MOST_IN_A_ROW = 64

/** Takes requests out of the bytes of a connection, one at a time: what is not wanted yet waits. */
export class RequestReader {
  /** Of the request under way or the one before, while bytes of it are still to come. */
  body: RequestBody | undefined
  /** Nothing more is heard. */
  stopped = false
  readonly #sink: RequestSink
  readonly #head: HeadBuffer
  readonly #unread: UnreadBytes
  /** The client has ended its side. */
  #isHalfOpen = false
  #running = false
  /** Requests taken since others last had their turn. */
  #inARow = 0
  #rests = false

  constructor(socket: Socket, maxHead: number, sink: RequestSink) {
    this.#sink = sink
    this.#head = new HeadBuffer(maxHead)
    this.#unread = new UnreadBytes(socket)
  }

  /** True while a head has begun that is not complete. */
  get hasBegun(): boolean {
    return this.#head.begun
  }

  /** True when the client has ended its side, and all it sent is read. */
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

  /** Reads what has come, as far as it can be read now. */
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
  }

  /** True when what is left of the body can be read past the answer. Where nobody has read it, that begins now. */
  dropBody(): boolean {
    const { body } = this
    if (body === undefined) return true
    if (body.awaits100) return false
    if (!body.begun) {
      // Often all of it has come.
      body.drop()
      while (!this.#unread.isEmpty && body.flows) this.#take(this.#unread.shift())
      this.#unread.steer()
    }
    return body.complete || (!body.aborted && body.length !== undefined && body.length <= MOST_DROPPED)
  }

  /** Hears nothing more; returns what was not read. */
  stop(): Buffer {
    this.stopped = true
    const rest = this.#unread.takeAll()
    this.#unread.steer()
    return rest
  }

  get #reads(): boolean {
    if (this.stopped) return false
    if (this.body !== undefined) return this.body.flows
    return this.#sink.isFree && this.#inARow < MOST_IN_A_ROW
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
