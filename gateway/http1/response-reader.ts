/** Reads the answer to one request: interim heads, its own head, its body. */
import type { Fields } from '../message.js'
import { BodyDecoder, type BodySink } from './body-decoder.js'
import { responseFraming } from './framing.js'
import { HeadBuffer } from './head-buffer.js'
import type { ParsedResponse } from './message.js'
import { parseResponseHead } from './response-head.js'

const MAX_HEAD = 16 * 1024
/** Interim answers to one request: who sends more means harm. */
const MAX_INTERIM = 64
const NO_TRAILERS: readonly string[] = []

/** Hears what an answer says as it is read. */
export interface ResponseSink {
  /** False once nobody wants what is still to come. */
  readonly isHeard: boolean
  /** An interim answer; 100 is not told. */
  onInterim(status: number, fields: Fields): void
  onHead(head: ParsedResponse): void
  onData(chunk: Buffer): void
  /** What follows is another protocol; `rest` is its first bytes. */
  onSwitch(head: ParsedResponse, rest: Buffer): void
}

export class ResponseReader implements BodySink {
  /** The head of the answer, once it has come. */
  head: ParsedResponse | undefined
  /** Flat, from behind the body. */
  trailers = NO_TRAILERS
  readonly #sink: ResponseSink
  readonly #heads = new HeadBuffer(MAX_HEAD, 'HTTP/1.')
  #method = ''
  #interim = 0
  #body: BodyDecoder | undefined

  constructor(sink: ResponseSink) {
    this.#sink = sink
  }

  /** What comes next is the answer to a request of this method. */
  begin(method: string): void {
    this.#method = method
    this.#interim = 0
  }

  /** Forgets the answer, but for its trailers. */
  clear(): void {
    this.head = this.#body = undefined
  }

  /** True while a body is being read. */
  get inBody(): boolean {
    return this.#body !== undefined
  }

  /** Takes bytes. Returns what came behind the answer; undefined while it is not complete. Throws on what is no answer. */
  push(chunk: Buffer): Buffer | undefined {
    let rest = chunk
    while (this.#body === undefined) {
      const found = this.#heads.add(rest)
      if (found === undefined) return undefined
      rest = found.rest
      const head = parseResponseHead(found.head)
      if (head.status >= 200) this.#begin(head)
      else if (head.status === 101) {
        this.#sink.onSwitch(head, rest)
        return undefined
      } else this.#tellInterim(head)
      if (!this.#sink.isHeard) return undefined
    }
    rest = this.#body.push(rest)
    return this.#body.done ? rest : undefined
  }

  /** The connection has ended. True if that is where the answer ends, too. */
  end(): boolean {
    return this.#body?.end() ?? false
  }

  /** Of the decoder. */
  onData(chunk: Buffer): void {
    this.#sink.onData(chunk)
  }

  /** Of the decoder: what came behind the body is yet to be seen. */
  onEnd(trailers: readonly string[]): void {
    this.trailers = trailers
  }

  #begin(head: ParsedResponse): void {
    const framing = responseFraming(head, this.#method)
    this.head = head
    this.trailers = NO_TRAILERS
    this.#sink.onHead(head)
    this.#body = new BodyDecoder(framing, this)
  }

  #tellInterim({ status, fields }: ParsedResponse): void {
    this.#interim += 1
    if (this.#interim > MAX_INTERIM) throw new Error('too many interim answers')
    if (status !== 100) this.#sink.onInterim(status, fields)
  }
}
