import type { Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import type { IncomingRequest, Peer, Takeover } from '../message.js'
import type { Timed } from './deadlines.js'
import { requestFraming } from './framing.js'
import { HeadBuffer } from './head-buffer.js'
import { closeLingering } from './lingering-close.js'
import { type Framing, type ParsedRequest, WireError } from './message.js'
import { refusalText } from './refusal.js'
import { asksForWebSocket, expectsContinue } from './request-asks.js'
import { RequestBody } from './request-body.js'
import { parseRequestHead } from './request-head.js'
import type { ServerConnections } from './server-connections.js'
import { ServerResponse } from './server-response.js'
import { UnreadBytes } from './unread-bytes.js'

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
/** Of a body that nobody wants, so much is read, so that the connection can go on. */
const MOST_DROPPED = 64 * 1024
/** When a client has ended its side, silence for so long means that it has left: most have. */
const HALF_OPEN_MS = 1_000
const NEVER = Number.POSITIVE_INFINITY

/**
 * A client's connection: one request at a time. What comes behind it waits until it is answered, so answers are in the
 * order of their requests, and none gets in the way of another.
 */
export class ServerConnection implements Timed {
  readonly socket: Socket
  deadline: number
  readonly #all: ServerConnections
  readonly #peer: Peer
  readonly #head: HeadBuffer
  readonly #unread: UnreadBytes
  /** To the request under way: there is none yet, or not all of it has left. */
  #response: ServerResponse | undefined
  /** Of that request or the one before, while bytes of it are still to come. */
  #body: RequestBody | undefined
  /** The client has ended its side. */
  #halfOpen = false
  /** Bytes written when a half-open client was last looked at. */
  #spoken = 0
  #running = false
  /** Nothing more is heard: the connection is ending, or has another owner. */
  #deaf = false
  #limitsReader = false

  constructor(socket: Socket, peer: Peer, all: ServerConnections) {
    const { deadlines, settings } = all
    this.socket = socket
    this.#peer = peer
    this.#all = all
    this.#head = new HeadBuffer(settings.maxHead)
    this.#unread = new UnreadBytes(socket)
    this.deadline = deadlines.now() + settings.headTimeoutMs
    socket.on('data', this.#onData).on('end', this.#onEnd).on('drain', this.#onDrain)
    // After an error comes `close`, too.
    socket
      .on('timeout', this.#onTimeout)
      .on('close', this.#onClose)
      .on('error', () => {})
  }

  /** True while a head has begun that is not complete. */
  get hasBegun(): boolean {
    return this.#head.begun
  }

  /** Ends it, where no request is under way. */
  close(): void {
    this.#deafen()
    this.socket.destroySoon()
  }

  destroy(): void {
    this.socket.destroy()
  }

  onDeadline(): void {
    const response = this.#response
    if (response !== undefined) {
      if (this.#body === undefined) this.#endSilence()
      else if (response.status === 0) this.#refuse('request-timeout')
      else response.cut()
    } else if (this.#body !== undefined) this.destroy()
    else if (this.#head.begun || this.#all.isFresh(this)) this.#refuse('request-timeout')
    else this.close()
  }

  /** Somebody takes the body now. */
  onBodyWanted(): void {
    if (this.#body?.takeExpectation() && this.#response?.status === 0) this.#sendContinue()
    this.#run()
  }

  onBodyEnd(): void {
    this.#body = undefined
    this.deadline = NEVER
    if (this.#response === undefined) this.#wait()
  }

  /** The value of Keep-Alive when another request may follow the present one; undefined when none may. */
  keepAlive(): string | undefined {
    if (this.#all.draining || (this.#halfOpen && this.#unread.isEmpty)) return undefined
    return this.#body === undefined || this.#canDrop(this.#body) ? this.#all.keepAlive : undefined
  }

  /** The answer is written. */
  onAnswerEnd(): void {
    const { socket } = this
    const { isLast } = this.#response as ServerResponse
    this.#body?.drop()
    if (isLast) this.#deafen()
    if (isLast ? socket.writableLength === 0 : !socket.writableNeedDrain) this.#answered()
    else {
      if (!this.#limitsReader) this.limitReader(this.#all.settings.keepAliveMs)
      if (isLast) socket.end(this.#onDrain)
      else this.#run()
    }
  }

  /** Breaks off so that the answer looks cut: to an old client the end of the connection would be the end of it. */
  cut(): void {
    if (this.#response?.isOld) this.socket.resetAndDestroy()
    else this.socket.destroy()
  }

  limitReader(ms: number): void {
    this.#limitsReader = ms > 0
    // Node knows a client that reads slowly from one that does not read at all.
    this.socket.setTimeout(ms)
  }

  /** Reads what has come, as far as it can be read now. */
  #run(): void {
    if (this.#running) return
    this.#running = true
    const unread = this.#unread
    while (!unread.isEmpty && this.#reads) {
      if (this.#body === undefined) this.#takeHead(unread.shift())
      else this.#takeBody(this.#body, unread.shift())
    }
    this.#running = false
    if (this.#deaf) return
    if (this.#halfOpen && unread.isEmpty) this.#afterLastByte()
    else unread.steer()
  }

  get #reads(): boolean {
    if (this.#deaf) return false
    return this.#body === undefined ? this.#response === undefined : this.#body.flows
  }

  #takeHead(chunk: Buffer): void {
    const isFirst = !this.#head.begun
    try {
      const gathered = this.#head.add(chunk)
      if (gathered !== undefined) {
        this.#unread.putBack(gathered.rest)
        const head = parseRequestHead(gathered.head)
        if (head.method === 'CONNECT') this.#refuse('method-not-allowed')
        else this.#begin(head, requestFraming(head))
      } else if (isFirst && this.#head.begun) this.#limit(this.#all.settings.headTimeoutMs)
    } catch (error) {
      this.#refuse(error instanceof WireError ? error.code : 'internal')
    }
  }

  #begin(head: ParsedRequest, framing: Framing): void {
    this.#all.busy(this)
    const upgrade = framing.kind === 'none' && asksForWebSocket(head)
    const expects = expectsContinue(head)
    const body = framing.kind === 'none' ? undefined : new RequestBody(framing, expects, this)
    const response = new ServerResponse(this, head)
    this.#response = response
    this.#body = body
    // What a refused client has sent in the other protocol must not be read as a request.
    if (upgrade) response.closeAfter()
    if (body !== undefined) this.#limit(this.#all.settings.requestTimeoutMs)
    else {
      this.deadline = NEVER
      // There is no body to ask for, but the client may wait all the same.
      if (expects) this.#sendContinue()
    }
    const { method, target, version, fields } = head
    const request: IncomingRequest = { method, target, version, fields, upgrade, peer: this.#peer, body }
    const { handlers } = this.#all
    try {
      if (upgrade) handlers.upgrade(request, response, () => this.#takeOver())
      else handlers.request(request, response)
    } catch (error) {
      this.#fail(error)
    }
  }

  #sendContinue(): void {
    this.socket.write(CONTINUE, 'latin1')
  }

  #takeBody(body: RequestBody, chunk: Buffer): void {
    try {
      this.#unread.putBack(body.push(chunk))
    } catch (error) {
      if (error instanceof WireError) this.#breakBody(body, error.code)
      else this.#fail(error)
    }
  }

  /** What the client sends is no body any more, and where a next request would begin nobody can tell. */
  #breakBody(body: RequestBody, code: ErrorCode): void {
    const response = this.#response
    response?.closeAfter()
    if (response === undefined) this.#linger()
    else if (body.dropped) body.abort()
    else if (response.status === 0) this.#refuse(code)
    else response.cut()
  }

  /** True when what is left of a body can be read past the answer. Where nobody has read it, that begins now. */
  #canDrop(body: RequestBody): boolean {
    if (body.awaits100) return false
    if (!body.begun) {
      // Often all of it has come.
      body.drop()
      while (!this.#unread.isEmpty && body.flows) this.#takeBody(body, this.#unread.shift())
      this.#unread.steer()
    }
    return body.complete || (!body.aborted && body.length !== undefined && body.length <= MOST_DROPPED)
  }

  /** The answer has left, but for what the system still sends. */
  #answered(): void {
    const response = this.#response as ServerResponse
    this.#response = undefined
    if (this.#limitsReader) this.limitReader(0)
    if (response.isLast) this.#linger()
    else if (this.#body === undefined) this.#wait()
    else this.#limit(this.#all.settings.headTimeoutMs)
    response.close()
    this.#run()
  }

  /** For the next request. */
  #wait(): void {
    if (this.#deaf) return
    if (this.#all.draining) this.#linger()
    else {
      this.#limit(this.#all.settings.keepAliveMs)
      this.#all.idle(this)
    }
  }

  /** The client has ended its side, and all it sent is read. */
  #afterLastByte(): void {
    if (this.#response === undefined) {
      if (this.#head.begun) this.#refuse('bad-request')
      else this.close()
    } else if (this.#body !== undefined) this.#breakBody(this.#body, 'bad-request')
    else if (this.deadline === NEVER) this.#waitForSign()
  }

  /** It may have left altogether, or read on: only what is written to it would tell. */
  #waitForSign(): void {
    this.#spoken = this.socket.bytesWritten
    this.#limit(HALF_OPEN_MS)
  }

  #endSilence(): void {
    const { bytesWritten, writableLength } = this.socket
    if (bytesWritten === this.#spoken && writableLength === 0) this.destroy()
    else this.#waitForSign()
  }

  /** Answers what is no request, or no longer one, and ends the connection. */
  #refuse(code: ErrorCode): void {
    this.#all.handlers.refused?.(code)
    const response = this.#response
    const body = this.#body
    this.#linger(refusalText(code))
    response?.close()
    body?.abort()
  }

  #fail(error: unknown): void {
    this.destroy()
    this.#all.handlers.failed?.(error)
  }

  #linger(lastBytes?: string): void {
    this.#deafen()
    closeLingering(this.socket, lastBytes)
  }

  #deafen(): void {
    this.#deaf = true
    this.deadline = NEVER
    this.#all.busy(this)
    this.#unread.takeAll()
    this.#unread.steer()
  }

  #takeOver(): Takeover {
    const { socket } = this
    const head = this.#unread.takeAll()
    // It has left before there was anything to take over.
    if (this.#halfOpen) this.destroy()
    this.#deaf = true
    this.deadline = NEVER
    this.limitReader(0)
    socket.off('data', this.#onData).off('end', this.#onEnd).off('drain', this.#onDrain)
    socket.off('timeout', this.#onTimeout)
    // As Node hands sockets over: nothing flows until somebody listens.
    socket.pause()
    Object.assign(socket, { readableFlowing: null })
    return { socket, head }
  }

  #limit(ms: number): void {
    this.deadline = this.#all.deadlines.now() + ms
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#deaf) return
    this.#unread.add(chunk)
    this.#run()
  }

  readonly #onEnd = (): void => {
    if (this.#deaf) return
    this.#halfOpen = true
    this.#run()
  }

  readonly #onDrain = (): void => {
    const response = this.#response
    if (response === undefined) return
    if (response.ended) this.#answered()
    else response.onDrain()
  }

  readonly #onTimeout = (): void => {
    if (this.socket.writableLength > 0) this.#response?.cut()
  }

  readonly #onClose = (): void => {
    const response = this.#response
    const body = this.#body
    this.#response = undefined
    this.#body = undefined
    this.#deafen()
    this.#all.closed(this)
    response?.close()
    body?.abort()
  }
}
