import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import type { IncomingRequest, Peer, Takeover } from '../message.js'
import type { Timed } from './deadlines.js'
import { closeLingering } from './lingering-close.js'
import { type Framing, Http2Preface, type ParsedRequest, WireError } from './message.js'
import { ReaderLimit } from './reader-limit.js'
import { refusalText } from './refusal.js'
import { RequestBody } from './request-body.js'
import { asksForWebSocket, expectsContinue, HTTP2_HEAD } from './request-head.js'
import { RequestReader } from './request-reader.js'
import type { ServerConnections, ServerHandlers } from './server-connections.js'
import { ServerResponse } from './server-response.js'

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
/** Longer than most requests take to arrive. */
const LAST_CHANCE_MS = 250
const NEVER = Number.POSITIVE_INFINITY

/**
 * A client's connection. Requests are handled one at a time: a pipelined request waits until the one before it is
 * answered, so responses are sent in the order of the requests.
 */
export class ServerConnection implements Timed {
  readonly socket: Socket
  deadline: number
  readonly #all: ServerConnections
  readonly #peer: Peer
  readonly #reader: RequestReader
  /** Response to the current request, until all of it has been sent. */
  #response: ServerResponse | undefined
  /** Id of the current request, or of the last one. */
  #id = ''
  readonly #readerLimit: ReaderLimit

  constructor(socket: Socket, peer: Peer, all: ServerConnections) {
    const { deadlines, settings } = all
    this.socket = socket
    this.#peer = peer
    this.#all = all
    this.#reader = new RequestReader(socket, settings.maxHead, all.stalls, this)
    this.#readerLimit = new ReaderLimit(socket, deadlines, this)
    this.deadline = deadlines.now() + settings.headTimeoutMs
    socket.on('data', this.#onData).on('end', this.#onEnd).on('drain', this.#onDrain)
    // `close` follows an error, and does the work.
    socket.on('close', this.#onClose).on('error', () => {})
  }

  /** Closes the connection; only while no request is in progress. */
  close(): void {
    this.#stopReading()
    // Over TLS, a write to a client that has reset its connection may never end.
    this.#limit(this.#all.settings.keepAliveMs)
    this.socket.destroySoon()
  }

  /** Closes a connection that waits for a request, unless one comes soon: it may be on its way already. */
  closeSoon(): void {
    if (!this.#reader.hasBegun) this.#limit(LAST_CHANCE_MS)
  }

  destroy(): void {
    this.socket.destroy()
  }

  onDeadline(): void {
    const response = this.#response
    if (this.#reader.stopped) this.destroy()
    else if (response !== undefined) {
      if (response.status === 0) this.#refuse('request-timeout')
      else response.cut()
    } else if (this.#reader.body !== undefined) this.destroy()
    else if (this.#reader.hasBegun || this.#all.expectsRequest(this)) this.#refuse('request-timeout')
    else this.close()
  }

  /** A reader wants the body, so a client that expects a 100 gets it now. */
  onBodyWanted(): void {
    if (this.#reader.body?.takeExpectation() && this.#response?.status === 0) this.#sendContinue()
    this.#reader.run()
  }

  onBodyEnd(): void {
    this.#reader.body = undefined
    this.deadline = NEVER
    if (this.#response === undefined) this.#wait()
  }

  /** The value of Keep-Alive if another request may follow the current one, else undefined. */
  keepAlive(): string | undefined {
    if (this.#all.draining || this.#reader.isOver) return undefined
    return this.#reader.dropBody() ? this.#all.keepAlive : undefined
  }

  /** The whole response has been written to the socket. */
  onAnswerEnd(): void {
    const { socket } = this
    const { isLast } = this.#response as ServerResponse
    this.#reader.body?.drop()
    if (isLast) this.#stopReading()
    if (isLast ? socket.writableLength === 0 : !socket.writableNeedDrain) this.#answered()
    else {
      if (!this.#readerLimit.isSet) this.limitReader(this.#all.settings.keepAliveMs)
      if (isLast) socket.end(this.#onDrain)
      else this.#reader.run()
    }
  }

  /** Breaks off visibly: an HTTP/1.0 client would take an orderly close for the regular end of the response. */
  cut(): void {
    if (this.#response?.isOld) this.socket.resetAndDestroy()
    else this.socket.destroy()
  }

  limitReader(ms: number): void {
    this.#readerLimit.set(ms)
  }

  /** Resets the connection: with a regular close, the operating system would hold the unread bytes for minutes. */
  onReaderGone(): void {
    if (this.#response === undefined) return
    this.socket.resetAndDestroy()
    this.#response.cut()
  }

  /** Not while a request body arrives: some clients read only after they have sent everything. */
  onReaderStalled(): void {
    if (this.#reader.body === undefined) this.#response?.cut()
  }

  get isFree(): boolean {
    return this.#response === undefined
  }

  get client(): string {
    return this.#peer.address
  }

  /** Too many clients have sent much behind a request in progress. */
  onMostStalled(): void {
    this.destroy()
  }

  onHeadBegun(): void {
    this.#limit(this.#all.settings.headTimeoutMs)
  }

  onRequest(head: ParsedRequest, framing: Framing): void {
    if (head.method === 'CONNECT') this.#refuse('method-not-allowed')
    else this.#begin(head, framing)
  }

  /** Ends the connection in any case, because the start of the next request is unknown. */
  onBroken(error: unknown): void {
    const { body } = this.#reader
    const { http2 } = this.#all.handlers
    if (!(error instanceof WireError)) this.#fail(error)
    else if (error instanceof Http2Preface && http2 !== undefined && this.#all.isFresh(this))
      this.#handOver(http2)
    else if (body !== undefined) this.#breakBody(body, error.code)
    else this.#refuse(error.code)
  }

  onLastByte(): void {
    if (this.#response === undefined) {
      if (this.#reader.hasBegun) this.#refuse('bad-request')
      else this.close()
    } else if (this.#reader.body !== undefined) this.#breakBody(this.#reader.body, 'bad-request')
  }

  #begin(head: ParsedRequest, framing: Framing): void {
    this.#all.busy(this)
    const upgrade = framing.kind === 'none' && asksForWebSocket(head)
    const expects = expectsContinue(head)
    const body = framing.kind === 'none' ? undefined : new RequestBody(framing, expects, this)
    const response = new ServerResponse(this, head)
    const id = randomUUID()
    this.#id = id
    this.#response = response
    this.#reader.body = body
    // If the upgrade is refused, WebSocket bytes sent early must not be read as a request.
    if (upgrade) response.closeAfter()
    if (body !== undefined) this.#limit(this.#all.settings.requestTimeoutMs)
    else {
      this.deadline = NEVER
      // There is no body to ask for, but the client may still wait for a 100.
      if (expects) this.#sendContinue()
    }
    const { method, target, version, fields } = head
    const request: IncomingRequest = { id, method, target, version, fields, upgrade, peer: this.#peer, body }
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

  #breakBody(body: RequestBody, code: ErrorCode): void {
    const response = this.#response
    response?.closeAfter()
    if (response === undefined) this.#linger()
    else if (body.dropped) body.abort()
    else if (response.status === 0) this.#refuse(code)
    else response.cut()
  }

  /** The response has been handed to the operating system. */
  #answered(): void {
    const response = this.#response as ServerResponse
    this.#response = undefined
    if (this.#readerLimit.isSet) this.limitReader(0)
    if (response.isLast) this.#linger()
    else if (this.#reader.body === undefined) this.#wait()
    else this.#limit(this.#all.settings.headTimeoutMs)
    response.close()
    this.#reader.run()
  }

  /** Waits for the next request. */
  #wait(): void {
    if (this.#reader.stopped) return
    if (this.#all.draining) this.#linger()
    else {
      this.#limit(this.#all.settings.keepAliveMs)
      this.#all.idle(this)
    }
  }

  /** Responds to input that is no valid request, or no longer one, and ends the connection. */
  #refuse(code: ErrorCode): void {
    const response = this.#response
    const { body } = this.#reader
    const id = response === undefined ? randomUUID() : this.#id
    if (response === undefined) this.#all.handlers.refused?.(code, id, this.#peer.address)
    this.#linger(refusalText(code, id))
    response?.refused(code)
    body?.abort()
  }

  #fail(error: unknown): void {
    this.destroy()
    this.#all.handlers.failed?.(error)
  }

  #linger(lastBytes?: string): void {
    this.#stopReading()
    closeLingering(this.socket, lastBytes)
  }

  #stopReading(): void {
    this.#reader.stop()
    this.deadline = NEVER
    this.#all.busy(this)
  }

  #takeOver(): Takeover {
    const { socket } = this
    const head = this.#reader.stop()
    this.deadline = NEVER
    this.limitReader(0)
    this.#readerLimit.close()
    socket.off('data', this.#onData).off('end', this.#onEnd).off('drain', this.#onDrain)
    // As in Node's `upgrade` event: nothing flows until a listener is added.
    socket.pause()
    Object.assign(socket, { readableFlowing: null })
    return { socket, head }
  }

  /** The whole connection is HTTP/2: only its first bytes look like HTTP/1.1. */
  #handOver(http2: NonNullable<ServerHandlers['http2']>): void {
    const { socket, head } = this.#takeOver()
    socket.off('close', this.#onClose)
    this.#all.closed(this)
    socket.unshift(Buffer.concat([Buffer.from(`${HTTP2_HEAD}\r\n`, 'latin1'), head]))
    http2(socket, this.#peer)
  }

  #limit(ms: number): void {
    this.deadline = this.#all.deadlines.now() + ms
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#reader.add(chunk)
  }

  /** A client that closes its side before the response is complete counts as gone; a half-close looks the same. */
  readonly #onEnd = (): void => {
    if (this.#response?.ended === false && this.#reader.body === undefined) this.destroy()
    else this.#reader.end()
  }

  readonly #onDrain = (): void => {
    const response = this.#response
    if (response === undefined) return
    if (response.ended) this.#answered()
    else response.onDrain()
  }

  readonly #onClose = (): void => {
    const response = this.#response
    const { body } = this.#reader
    this.#response = undefined
    this.#reader.body = undefined
    this.#stopReading()
    this.#readerLimit.close()
    this.#all.closed(this)
    response?.close()
    body?.abort()
  }
}
