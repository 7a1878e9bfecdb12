import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { listHas } from '../http1/fields.js'
import { CLOSING_MS } from '../http1/lingering-close.js'
import { lowerName } from '../http1/names.js'
import type { IncomingRequest, OutgoingResponse, ResponseWatcher } from '../message.js'
import { KEEP_ALIVE_MS } from './limits.js'

/** With more frames than this waiting for a slow client, interim responses are dropped. */
const MAX_QUEUED_FRAMES = 100

/** Higher values are no valid status, and Node does not send them; clients treat them as 5xx (RFC 9110 section 15). */
const MAX_STATUS = 599

/** Fields that are not allowed in HTTP/2 (RFC 9113 section 8.2.2). */
const CONNECTION_FIELDS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** The response on an HTTP/2 stream. */
export class StreamResponse implements OutgoingResponse {
  status = 0
  closed = false
  sent = 0
  /** The client has reset the stream or left before the end of the response; false if the response was cut here. */
  clientLeft = false
  #brokeOff = false
  readonly #stream: ServerHttp2Stream
  readonly #req: IncomingRequest
  readonly #patienceMs: number
  readonly #watchers: ResponseWatcher[] = []
  /** The head, until it is sent. */
  #head: OutgoingHttpHeaders | undefined
  #trailers: readonly string[] = []
  #ended = false
  #timer: NodeJS.Timeout | undefined
  #limitMs = 0

  /** A response that has ended must be sent within `patienceMs`. */
  constructor(stream: ServerHttp2Stream, req: IncomingRequest, patienceMs = KEEP_ALIVE_MS) {
    this.#stream = stream
    this.#patienceMs = patienceMs
    this.#req = req
    // An error means that the client has left, which `close` reports.
    stream.on('error', () => {})
    stream.on('aborted', () => this.#onGone()).on('close', () => this.#onGone())
    stream.on('drain', () => this.#onDrain())
  }

  watch(watcher: ResponseWatcher): void {
    if (!this.closed) this.#watchers.push(watcher)
  }

  sendInterim(status: number, fields: readonly string[]): void {
    const stream = this.#stream
    if (this.#isOver || this.status !== 0) return
    if ((stream.session?.state.outboundQueueSize ?? 0) > MAX_QUEUED_FRAMES) return
    stream.additionalHeaders({ ...headersOf(fields), ':status': status })
  }

  /** Sends the 100 that a client awaits before it sends the body. */
  sendContinue(): void {
    if (!this.#isOver && this.status === 0) this.#stream.additionalHeaders({ ':status': 100 })
  }

  /** The reason is dropped: HTTP/2 has none. */
  writeHead(status: number, _reason: string, fields: readonly string[]): void {
    if (this.#isOver || this.status !== 0) return
    this.status = status > MAX_STATUS ? 502 : status
    this.#head = { ...headersOf(fields), ':status': this.status }
    // A 304 may have a Content-Length (RFC 9113 section 8.1.1), but Go's client then expects a body. A 205 has no
    // content (RFC 9110 section 15.3.6), and Node sends none.
    if (status === 304 || status === 205) delete this.#head['content-length']
  }

  write(chunk: Buffer): boolean {
    if (this.#isOver || this.status === 0) return true
    this.flush()
    // The response to HEAD, and a 204 or 304, ends with its head.
    if (chunk.length === 0 || this.#stream.writableEnded) return true
    this.sent += chunk.length
    return this.#stream.write(chunk, () => this.#onProgress())
  }

  flush(): void {
    if (!this.#isOver) this.#sendHead({ waitForTrailers: this.#mayHaveTrailers })
  }

  end(last?: Buffer | string, trailers: readonly string[] = []): void {
    if (this.#isOver || this.status === 0) return
    const stream = this.#stream
    this.#trailers = trailers
    const waitForTrailers = trailers.length > 0 && this.#mayHaveTrailers
    const isEmpty = last === undefined || last.length === 0
    this.#sendHead({ endStream: isEmpty && !waitForTrailers, waitForTrailers })
    this.#ended = true
    stream.once('finish', () => this.#onEnd())
    if (isEmpty || stream.writableEnded) stream.end()
    else {
      this.sent += Buffer.byteLength(last)
      stream.end(last)
    }
    // A client can keep even the head from being sent. Without a limit the stream and its connection would never end.
    if (this.#limitMs === 0) this.limitReader(this.#patienceMs)
  }

  /**
   * A response that breaks off must not look complete: `close` would end the stream before resetting it.
   *
   * Never synchronous, because this may be called while Node reads or closes the stream. A stream destroyed during its
   * `aborted` event is never reset, and its unsent data keeps Node writing empty frames for ever (nodejs/node#52952).
   */
  cut(): void {
    if (this.closed) return
    this.#ended = true
    const stream = this.#stream
    this.#brokeOff = !stream.aborted && !stream.closed
    setImmediate(() => {
      if (!stream.writableFinished) stream.destroy(new Error('the answer broke off'))
    })
  }

  /** Has no effect: the connection continues after any stream. */
  closeAfter(): void {}

  limitReader(ms: number): void {
    if (this.closed) return
    this.#limitMs = ms
    this.#onProgress()
  }

  get #isOver(): boolean {
    return this.closed || this.#ended || this.#stream.destroyed || this.#stream.closed
  }

  #sendHead(options: { endStream?: boolean; waitForTrailers?: boolean }): void {
    const head = this.#head
    this.#head = undefined
    if (head === undefined) return
    if (options.waitForTrailers) this.#stream.once('wantTrailers', () => this.#sendTrailers())
    this.#stream.respond(head, options)
  }

  /** Evaluated before the head is sent, because trailers must be announced to Node with the head. */
  get #mayHaveTrailers(): boolean {
    const { status } = this
    if (this.#req.method === 'HEAD' || status === 204 || status === 205 || status === 304) return false
    if (this.#head?.['content-length'] !== undefined) return false
    return listHas(this.#req.fields.get('te') ?? '', 'trailers')
  }

  /** Also ends the stream, so it is called even without trailers. */
  #sendTrailers(): void {
    const stream = this.#stream
    if (!stream.destroyed && !stream.closed) stream.sendTrailers(headersOf(this.#trailers))
  }

  #onDrain(): void {
    for (const watcher of this.#watchers) watcher.onDrain?.()
  }

  /**
   * All bytes of a write were sent, so the time limit of the client starts again. Node does not tell when a part of them
   * was sent, so a large write has up to twice the time: 1 KB/s is then fast enough.
   */
  #onProgress(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#limitMs === 0 || this.closed) return
    const atOneKilobyte = Math.min(this.#stream.writableLength, 2 * this.#limitMs)
    this.#timer = setTimeout(() => this.#onStall(), Math.max(this.#limitMs, atOneKilobyte))
  }

  #onStall(): void {
    if (this.#stream.writableLength > 0 || this.#ended) this.cut()
  }

  #onEnd(): void {
    const stream = this.#stream
    // Stop the rest of the upload (RFC 9113 section 8.1). Done at once, the reset would overtake a head without a body.
    setImmediate(() => {
      if (this.#req.body?.complete !== false) return
      stream.close(constants.NGHTTP2_NO_ERROR)
      // If the client is gone, Node may never finish the close, and would keep the stream.
      setTimeout(() => stream.destroy(), CLOSING_MS).unref()
    })
    this.#close()
  }

  #onGone(): void {
    if (this.closed) return
    // On a stream that ends normally, Node may emit `close` before `finish`.
    const isWhole = this.#ended && this.#stream.rstCode === constants.NGHTTP2_NO_ERROR
    this.clientLeft = !isWhole && !this.#brokeOff
    this.#close()
  }

  #close(): void {
    if (this.closed) return
    this.closed = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.splice(0)) watcher.onClose?.()
  }
}

/** Repeated fields are joined (RFC 9110 section 5.3), except Set-Cookie, which cannot be. */
function headersOf(flat: readonly string[]): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = Object.create(null)
  const cookies: string[] = []
  for (let i = 0; i < flat.length; i += 2) {
    const name = lowerName(flat[i] as string)
    const value = flat[i + 1] as string
    if (CONNECTION_FIELDS.has(name)) continue
    if (name === 'set-cookie') cookies.push(value)
    else headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  if (cookies.length > 0) headers['set-cookie'] = cookies
  return headers
}
