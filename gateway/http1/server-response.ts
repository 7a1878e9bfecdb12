import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { CATALOGUE, type ErrorCode } from '../errors.js'
import type { OutgoingResponse, ResponseWatcher } from '../message.js'
import { isPersistent } from './framing.js'
import { chunkPrefix, dateNow, headText, lastChunk } from './head-text.js'
import type { ParsedRequest } from './message.js'
import { lowerName } from './names.js'
import { takesTrailers } from './request-head.js'

/** The connection that a response is written to. */
export interface AnswerSink {
  readonly socket: Socket
  /** Called when the head is sent: the value of Keep-Alive, or undefined if this is the last response. */
  keepAlive(): string | undefined
  onAnswerEnd(): void
  cut(): void
  limitReader(ms: number): void
}

/** A piece of the body up to this size is written as one string with the text around it. */
const SMALL = 4 * 1024
const NOTHING = Buffer.alloc(0)
/** Truncated to one byte, some of these characters would become line breaks. */
const BEYOND_LATIN1 = /[\u0100-\uffff]/g

type Framing = 'none' | 'length' | 'chunked' | 'close'

/** The response to one request, in HTTP/1.1. */
export class ServerResponse implements OutgoingResponse {
  status = 0
  sent = 0
  /** This is the last response on its connection. */
  isLast: boolean
  /** The whole response has been written. */
  ended = false
  readonly #sink: AnswerSink
  readonly #asked: ParsedRequest
  readonly #watchers: ResponseWatcher[] = []
  /** Status line and fields, without those of the framing, until they are sent. */
  #head = ''
  #length: string | undefined
  #hasDate = false
  #framing: Framing | undefined
  /** Bytes of the announced length still to be written. */
  #left = 0
  #closed = false
  #cut = false

  constructor(sink: AnswerSink, asked: ParsedRequest) {
    this.#sink = sink
    this.#asked = asked
    this.isLast = !isPersistent(asked)
  }

  /** True for an HTTP/1.0 client, which takes the end of the connection for the end of a response. */
  get isOld(): boolean {
    return this.#asked.version === '1.0'
  }

  get closed(): boolean {
    return this.#closed || this.#cut
  }

  watch(watcher: ResponseWatcher): void {
    if (!this.#closed) this.#watchers.push(watcher)
  }

  sendInterim(status: number, fields: readonly string[]): void {
    const { socket } = this.#sink
    if (this.status !== 0 || this.#isOver || this.isOld) return
    // A client that is slow to read must not make interim responses pile up in memory.
    if (socket.writableNeedDrain) return
    socket.write(headText(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, fields), 'latin1')
  }

  writeHead(status: number, reason: string, fields: readonly string[]): void {
    if (this.status !== 0 || this.#isOver) return
    this.status = status
    let head = `HTTP/1.1 ${status} ${reason}\r\n`
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      if (name.length === 14 && lowerName(name) === 'content-length') this.#length = value
      else if (name.length === 4 && lowerName(name) === 'date') this.#hasDate = true
      head += `${name}: ${value}\r\n`
    }
    this.#head = head.replace(BEYOND_LATIN1, '?')
  }

  write(chunk: Buffer): boolean {
    if (this.#isOver || this.status === 0) return true
    if (chunk.length === 0) {
      this.flush()
      return true
    }
    const before = this.#takeHead(undefined)
    if (this.#framing === 'none') return before === '' || this.#sink.socket.write(before, 'latin1')
    if (!this.#counts(chunk.length)) return true
    this.sent += chunk.length
    if (this.#framing !== 'chunked') return this.#send(before, chunk, '')
    return this.#send(before + chunkPrefix(chunk.length), chunk, '\r\n')
  }

  flush(): void {
    if (this.#isOver || this.status === 0) return
    const head = this.#takeHead(undefined)
    if (head !== '') this.#sink.socket.write(head, 'latin1')
  }

  end(last: Buffer | string = NOTHING, trailers: readonly string[] = []): void {
    if (this.#isOver || this.status === 0) return
    const chunk = typeof last === 'string' ? latin1Of(last) : last
    const passed = trailers.length > 0 && takesTrailers(this.#asked) ? trailers : []
    const before = this.#takeHead(passed.length > 0 ? undefined : chunk.length)
    if (this.#framing === 'none') this.#send(before, NOTHING, '')
    else if (this.#framing === 'chunked') {
      this.sent += chunk.length
      const size = chunk.length === 0 ? '' : chunkPrefix(chunk.length)
      this.#send(before + size, chunk, (size && '\r\n') + lastChunk(passed))
    } else {
      if (this.#counts(chunk.length)) {
        this.sent += chunk.length
        this.#send(before, chunk, '')
      }
      // Shorter than announced: the client must not take it for complete.
      if (this.#framing === 'length' && this.#left > 0) this.cut()
      if (this.#cut) return
    }
    this.ended = true
    this.#sink.onAnswerEnd()
  }

  cut(): void {
    if (this.#closed || this.#cut) return
    this.#cut = true
    this.#sink.cut()
  }

  closeAfter(): void {
    this.isLast = true
  }

  limitReader(ms: number): void {
    if (!this.closed) this.#sink.limitReader(ms)
  }

  /** The socket can take more. */
  onDrain(): void {
    for (const watcher of this.#watchers) watcher.onDrain?.()
  }

  /** The response has been sent, or the client has left. */
  close(): void {
    this.#close()
  }

  /** The connection has sent an error response instead of this one. */
  refused(code: ErrorCode): void {
    if (!this.#closed) this.status = CATALOGUE[code].status
    this.#close(code)
  }

  #close(refused?: ErrorCode): void {
    if (this.#closed) return
    this.#closed = true
    for (const watcher of this.#watchers.splice(0)) watcher.onClose?.(refused)
  }

  get #isOver(): boolean {
    return this.#closed || this.#cut || this.ended || this.#sink.socket.destroyed
  }

  /** The head with its framing, or '' if it was sent already. `whole` is the length of a body that is passed whole. */
  #takeHead(whole: number | undefined): string {
    if (this.#framing !== undefined) return ''
    let head = this.#head
    this.#head = ''
    this.#framing = this.#chooseFraming(whole)
    if (this.#framing === 'chunked') head += 'Transfer-Encoding: chunked\r\n'
    else if (this.#framing === 'length') {
      if (this.#length === undefined) head += `Content-Length: ${whole}\r\n`
      this.#left = Number(this.#length ?? whole)
    }
    if (!this.#hasDate) head += `Date: ${dateNow()}\r\n`
    const keepAlive = this.isLast || this.#framing === 'close' ? undefined : this.#sink.keepAlive()
    if (keepAlive !== undefined) return `${head}Connection: keep-alive\r\nKeep-Alive: ${keepAlive}\r\n\r\n`
    this.isLast = true
    return `${head}Connection: close\r\n\r\n`
  }

  #chooseFraming(whole: number | undefined): Framing {
    if (this.#asked.method === 'HEAD' || this.status === 204 || this.status === 304) return 'none'
    if (this.#length !== undefined || whole !== undefined) return 'length'
    return this.isOld ? 'close' : 'chunked'
  }

  /** False, after cutting the connection, when the body exceeds the announced length. */
  #counts(bytes: number): boolean {
    if (this.#framing !== 'length') return true
    this.#left -= bytes
    if (this.#left >= 0) return true
    this.cut()
    return false
  }

  /** Hands everything to the operating system in one write. */
  #send(before: string, chunk: Buffer | string, behind: string): boolean {
    const { socket } = this.#sink
    if (before === '' && behind === '') return chunk.length === 0 || socket.write(chunk, 'latin1')
    if (chunk.length <= SMALL) return socket.write(before + chunk.toString('latin1') + behind, 'latin1')
    socket.cork()
    if (before !== '') socket.write(before, 'latin1')
    let takesMore = socket.write(chunk, 'latin1')
    if (behind !== '') takesMore = socket.write(behind, 'latin1')
    socket.uncork()
    return takesMore
  }
}

/** The UTF-8 bytes of `text`, each as one character. */
function latin1Of(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}
