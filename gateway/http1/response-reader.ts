/** Reads the response to one request: interim heads, the final head and the body. */
import type { Fields } from '../message.js'
import { BodyDecoder, type BodySink } from './body-decoder.js'
import { parseFields } from './fields.js'
import { isBodyless, mayTrailBody, responseFraming } from './framing.js'
import { isLineEnd, SPACE, skip, TEXT } from './grammar.js'
import { HeadBuffer } from './head-buffer.js'
import { type Framing, type ParsedResponse, WireError } from './message.js'
import { versionAt } from './request-head.js'
import { MAX_INTERIM, MAX_RESPONSE_HEAD } from './response-limits.js'

const NO_TRAILERS: readonly string[] = []

/** Receives a response as it is read. */
export interface ResponseSink {
  /** False once the rest of the response is no longer wanted. */
  readonly isFinal: boolean
  /** An interim (1xx) response other than 100. */
  onInterim(status: number, fields: Fields): void
  onHead(head: ParsedResponse): void
  onData(chunk: Buffer): void
  /** The upstream has switched protocols; `rest` holds the first bytes of the new one. */
  onSwitch(head: ParsedResponse, rest: Buffer): void
}

export class ResponseReader implements BodySink {
  /** The final head, once it has arrived. */
  head: ParsedResponse | undefined
  /** Trailers as a flat list. */
  trailers = NO_TRAILERS
  /** The last response ended with its head. */
  isBodyless = false
  readonly #sink: ResponseSink
  readonly #heads = new HeadBuffer(MAX_RESPONSE_HEAD, 'HTTP/1.')
  #method = ''
  #interim = 0
  #body: BodyDecoder | undefined

  constructor(sink: ResponseSink) {
    this.#sink = sink
  }

  /** Gets ready for the response to a request with this method. */
  begin(method: string): void {
    this.#method = method
    this.#interim = 0
    this.isBodyless = false
  }

  /** Forgets the response, except for its trailers and `isBodyless`. */
  clear(): void {
    this.head = this.#body = undefined
  }

  /** True when a body may follow a bodyless response, by a fault of the upstream that is known to occur. */
  get mayTrail(): boolean {
    return this.head !== undefined && mayTrailBody(this.head, this.#method)
  }

  /** True while a body is being read. */
  get inBody(): boolean {
    return this.#body !== undefined
  }

  /** Takes bytes. Returns those after the response, or undefined while it is incomplete. Throws if it is invalid. */
  push(chunk: Buffer): Buffer | undefined {
    let rest = chunk
    while (this.#body === undefined) {
      const found = this.#heads.add(rest)
      if (found === undefined) return undefined
      rest = found.rest
      const head = parseResponseHead(found.head)
      const framing = responseFraming(head, this.#method)
      if (head.status >= 200) this.#begin(head, framing)
      else if (head.status === 101) {
        this.#sink.onSwitch(head, rest)
        return undefined
      } else this.#onInterim(head)
      if (!this.#sink.isFinal) return undefined
    }
    rest = this.#body.push(rest)
    return this.#body.done ? rest : undefined
  }

  /** The connection has ended. True if that completes the response. */
  end(): boolean {
    return this.#body?.end() ?? false
  }

  /** Called by the decoder. */
  onData(chunk: Buffer): void {
    this.#sink.onData(chunk)
  }

  /** Called by the decoder. `push` reports the end of the response, with the bytes after it. */
  onEnd(trailers: readonly string[]): void {
    this.trailers = trailers
  }

  #begin(head: ParsedResponse, framing: Framing): void {
    this.head = head
    this.trailers = NO_TRAILERS
    this.isBodyless = isBodyless(head, this.#method)
    this.#sink.onHead(head)
    this.#body = new BodyDecoder(framing, this)
  }

  #onInterim({ status, fields }: ParsedResponse): void {
    this.#interim += 1
    if (this.#interim > MAX_INTERIM) throw new Error('too many interim responses')
    if (status !== 100) this.#sink.onInterim(status, fields)
  }
}

const STATUS_AT = 'HTTP/1.1 '.length
const STATUS_END = STATUS_AT + 3

/**
 * Parses a head: its lines, each with its CRLF, without the empty line. Throws `bad-request` on a violation of the
 * grammar, except that the blank before an empty reason may be missing, as it often is.
 */
export function parseResponseHead(head: string): ParsedResponse {
  const version = versionAt(head, 0)
  if (version === undefined || head.charCodeAt(STATUS_AT - 1) !== SPACE)
    throw new WireError('bad-request', 'the version')
  const status = digit(head, STATUS_AT) * 100 + digit(head, STATUS_AT + 1) * 10 + digit(head, STATUS_AT + 2)
  if (!(status >= 100)) throw new WireError('bad-request', 'the status')
  const hasReason = head.charCodeAt(STATUS_END) === SPACE
  const lineEnd = hasReason ? skip(head, STATUS_END + 1, TEXT) : STATUS_END
  if (!isLineEnd(head, lineEnd)) throw new WireError('bad-request', 'the reason')
  return {
    status,
    reason: hasReason ? head.slice(STATUS_END + 1, lineEnd) : '',
    version,
    fields: parseFields(head, lineEnd + 2),
  }
}

/** NaN if there is no digit. */
function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 0x30
  return value >= 0 && value <= 9 ? value : Number.NaN
}
