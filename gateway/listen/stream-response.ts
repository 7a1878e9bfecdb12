import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'
import { Writable } from 'node:stream'
import type { InterimSender } from '../types.js'
import type { StreamRequest } from './stream-request.js'

/** Frames that may wait for a client that is slow to read before interim answers are left out. */
const MAX_QUEUED_FRAMES = 100

/** Fields that HTTP/2 has no use for (RFC 9113 section 8.2.2). */
const CONNECTION_FIELDS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/**
 * The answer on an HTTP/2 stream, with as much of Node's ServerResponse as this house uses. (Node's own stand-in
 * takes a cut upload for a complete one, and does not tell when its client has left.)
 */
export class StreamResponse extends Writable implements InterimSender {
  readonly req: StreamRequest
  statusCode = 200
  headersSent = false
  /** Means nothing here: the connection goes on whatever becomes of a stream. */
  shouldKeepAlive = true
  /** The client has reset the stream, or is gone, before the answer's end. */
  clientLeft = false
  readonly #stream: ServerHttp2Stream
  #timer: NodeJS.Timeout | undefined
  #limitMs = 0

  constructor(stream: ServerHttp2Stream, req: StreamRequest) {
    super()
    this.#stream = stream
    this.req = req
    // Who has left needs no answer; that it has left is told by `close`.
    this.on('error', () => {})
    stream.on('error', () => {})
    stream.on('aborted', () => this.#leave()).on('close', () => this.#leave())
  }

  get socket(): StreamRequest['socket'] {
    return this.req.socket
  }

  /** As ServerResponse has it, with flat fields; the reason has no place in HTTP/2. */
  writeHead(status: number, reason?: string | readonly string[], fields?: readonly string[]): this {
    const flat = Array.isArray(reason) ? reason : (fields ?? [])
    this.statusCode = status
    if (this.#stream.destroyed || this.#stream.closed) return this
    this.#stream.respond({ ...headersOf(flat), ':status': status })
    this.headersSent = true
    return this
  }

  writeContinue(): void {
    if (!this.#stream.destroyed && !this.#stream.closed) this.#stream.additionalHeaders({ ':status': 100 })
  }

  sendInterim(status: number, fields: readonly string[]): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    if ((stream.session?.state.outboundQueueSize ?? 0) > MAX_QUEUED_FRAMES) return
    stream.additionalHeaders({ ...headersOf(fields), ':status': status })
  }

  /** Emits `timeout` when for `ms` nothing that was written has left; 0 ends the watch. */
  setTimeout(ms: number, onTimeout?: () => void): this {
    if (onTimeout !== undefined) this.on('timeout', onTimeout)
    clearTimeout(this.#timer)
    this.#limitMs = ms
    this.#watch()
    return this
  }

  /** This answer where one of HTTP/1.1 is asked for. */
  asServerResponse(): ServerResponse {
    return this as unknown as ServerResponse
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (!this.headersSent) this.writeHead(this.statusCode)
    // The answer to HEAD, and a 204 or 304, is over with its head.
    if (chunk.length === 0 || this.#stream.writableEnded) done()
    else {
      this.#stream.write(chunk, error => {
        clearTimeout(this.#timer)
        this.#watch()
        done(error)
      })
    }
  }

  override _final(done: (error?: Error | null) => void): void {
    if (!this.headersSent) this.writeHead(this.statusCode)
    this.#stream.end(() => {
      // What is left of the request is not wanted (RFC 9113 section 8.1). Said at once, it would overtake a bare head.
      setImmediate(() => {
        if (!this.req.complete) this.#stream.close(constants.NGHTTP2_NO_ERROR)
      })
      done()
    })
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#limitMs = 0
    // An answer that breaks off must not look complete: `close` would end the stream before it resets it.
    if (!this.writableFinished) this.#stream.destroy(new Error('the answer broke off'))
    done(error)
  }

  #watch(): void {
    this.#timer = this.#limitMs > 0 ? setTimeout(() => this.emit('timeout'), this.#limitMs) : undefined
  }

  #leave(): void {
    if (this.writableFinished || this.destroyed) return
    this.clientLeft = true
    this.destroy()
  }
}

/** Repeats are joined (RFC 9110 section 5.3), but for Set-Cookie, which cannot be. */
function headersOf(flat: readonly string[]): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = Object.create(null)
  const cookies: string[] = []
  for (let i = 0; i < flat.length; i += 2) {
    const name = (flat[i] as string).toLowerCase()
    const value = flat[i + 1] as string
    if (CONNECTION_FIELDS.has(name)) continue
    if (name === 'set-cookie') cookies.push(value)
    else headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  if (cookies.length > 0) headers['set-cookie'] = cookies
  return headers
}
