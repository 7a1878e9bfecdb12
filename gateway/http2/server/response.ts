import { dateNow } from '../../http1/head-text.js'
import { lowerName } from '../../http1/names.js'
import { takesTrailers } from '../../http1/request-head.js'
import type { Fields, OutgoingResponse, ResponseWatcher } from '../../message.js'
import { isConnectionField } from '../hpack/header-field.js'
import type { SendQueue } from '../send-queue.js'

/** Higher values are no valid status; clients treat them as 5xx (RFC 9110 section 15). */
const MAX_STATUS = 599

/** The stream that a response is sent on. */
export interface ResponseStream {
  readonly queue: SendQueue
  /** The queue has something new. */
  send(): void
  /** Sends an interim response if nothing is in its way. */
  interim(status: number, fields: readonly string[]): void
  /** The final head is about to be sent. */
  onFinalHead(): void
  /** Resets the stream; the response is closed soon after. */
  cut(): void
  limitReader(ms: number): void
}

/** The response on an HTTP/2 stream. */
export class Http2Response implements OutgoingResponse {
  status = 0
  sent = 0
  readonly #sink: ResponseStream
  readonly #method: string
  readonly #asked: Fields
  readonly #watchers: ResponseWatcher[] = []
  #head: readonly string[] | undefined
  /** Bytes of the announced length still to be written; undefined if none was announced. */
  #left: number | undefined
  #ended = false
  #cut = false
  #closed = false

  constructor(sink: ResponseStream, method: string, asked: Fields) {
    this.#sink = sink
    this.#method = method
    this.#asked = asked
  }

  /** True once `end` was called. */
  get ended(): boolean {
    return this.#ended
  }

  get closed(): boolean {
    return this.#closed || this.#cut
  }

  watch(watcher: ResponseWatcher): void {
    if (!this.#closed) this.#watchers.push(watcher)
  }

  sendInterim(status: number, fields: readonly string[]): void {
    if (this.status === 0 && !this.#isOver) this.#sink.interim(status, withoutConnectionFields(fields))
  }

  /** The reason is dropped: HTTP/2 has none. */
  writeHead(status: number, _reason: string, fields: readonly string[]): void {
    if (this.status !== 0 || this.#isOver) return
    this.status = status > MAX_STATUS ? 502 : status
    const head: string[] = []
    let hasDate = false
    for (let i = 0; i < fields.length; i += 2) {
      const name = lowerName(fields[i] as string)
      const value = fields[i + 1] as string
      if (isConnectionField(name)) continue
      if (name === 'date') hasDate = true
      if (name === 'content-length') {
        // With a length, some clients wait for that many bytes of a response without content.
        if (status === 304 || status === 205) continue
        this.#left = Number(value)
      }
      head.push(name, value)
    }
    if (!hasDate) head.push('date', dateNow())
    this.#head = head
  }

  write(chunk: Buffer): boolean {
    if (this.#isOver || this.status === 0) return true
    this.#queueHead()
    if (chunk.length > 0 && !this.#isBodyless) {
      if (!this.#counts(chunk.length)) return true
      this.#sink.queue.addContent(chunk)
    }
    this.#sink.send()
    return this.closed || this.#sink.queue.isEmpty
  }

  flush(): void {
    if (this.#isOver || this.status === 0) return
    this.#queueHead()
    this.#sink.send()
  }

  end(last?: Buffer | string, trailers: readonly string[] = []): void {
    if (this.#isOver || this.status === 0) return
    this.#queueHead()
    const { queue } = this.#sink
    if (last !== undefined && last.length > 0 && !this.#isBodyless) {
      const chunk = typeof last === 'string' ? Buffer.from(last) : last
      if (!this.#counts(chunk.length)) return
      queue.addContent(chunk)
    }
    // Shorter than announced: the client must not take it for complete.
    if (this.#left !== undefined && this.#left > 0 && !this.#isBodyless) {
      this.cut()
      return
    }
    this.#ended = true
    const passed = trailers.length > 0 && !this.#isBodyless && takesTrailers({ fields: this.#asked })
    queue.addEnd(passed ? withoutConnectionFields(trailers) : [])
    this.#sink.send()
  }

  cut(): void {
    if (this.closed) return
    this.#cut = true
    this.#sink.cut()
  }

  /** Has no effect: the connection continues after any stream. */
  closeAfter(): void {}

  limitReader(ms: number): void {
    if (!this.closed) this.#sink.limitReader(ms)
  }

  /** Everything that was written has been sent. */
  onDrain(): void {
    for (const watcher of this.#watchers) watcher.onDrain?.()
  }

  /** The response has been sent or cut, or the client has left. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const watcher of this.#watchers.splice(0)) watcher.onClose?.()
  }

  get #isOver(): boolean {
    return this.closed || this.#ended
  }

  /** True when the response ends with its head. */
  get #isBodyless(): boolean {
    const { status } = this
    return this.#method === 'HEAD' || status === 204 || status === 205 || status === 304
  }

  #queueHead(): void {
    const head = this.#head
    if (head === undefined) return
    this.#head = undefined
    this.#sink.queue.addHead(this.status, head)
    this.#sink.onFinalHead()
  }

  /** False, after resetting the stream, when the body exceeds the announced length. */
  #counts(bytes: number): boolean {
    if (this.#left !== undefined) {
      this.#left -= bytes
      if (this.#left < 0) {
        this.cut()
        return false
      }
    }
    this.sent += bytes
    return true
  }
}

function withoutConnectionFields(fields: readonly string[]): readonly string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = lowerName(fields[i] as string)
    if (!isConnectionField(name)) kept.push(name, fields[i + 1] as string)
  }
  return kept
}
