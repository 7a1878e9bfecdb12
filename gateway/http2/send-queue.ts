import type { FrameWriter } from './frame-writer.js'
import { MAX_PAYLOAD } from './protocol.js'

/** What came of an attempt to send a frame, and what the next one waits for. */
export type SendResult =
  /** It was sent, and another can follow. */
  | 'more'
  /** Nothing waits. */
  | 'empty'
  /** The peer must open the window of the stream, or of the connection. */
  | 'stream-window'
  | 'connection-window'
  /** What was sent before must leave first. */
  | 'full'

const NO_TRAILERS: readonly string[] = []
const NOTHING = Buffer.alloc(0)

/** The frames of one message that have yet to be sent. */
export class SendQueue {
  /** Content that the peer takes on this stream; negative after it has reduced its windows. */
  window: number
  readonly #stream: number
  readonly #writer: FrameWriter
  #status = 0
  /** The head, until it is sent. */
  #head: readonly string[] | undefined
  readonly #chunks: Buffer[] = []
  /** Bytes of the first chunk that were sent. */
  #at = 0
  #trailers = NO_TRAILERS
  #begun = false
  #isWhole = false
  #ended = false

  constructor(stream: number, writer: FrameWriter, window: number) {
    this.#stream = stream
    this.#writer = writer
    this.window = window
  }

  get isEmpty(): boolean {
    return this.#head === undefined && this.#chunks.length === 0 && this.#isWhole === this.#ended
  }

  /** True once the head was sent. */
  get begun(): boolean {
    return this.#begun
  }

  /** True once the last frame was sent. */
  get ended(): boolean {
    return this.#ended
  }

  /** @param status 0 if `fields` begin with the pseudo-header fields */
  addHead(status: number, fields: readonly string[]): void {
    this.#status = status
    this.#head = fields
  }

  addContent(chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  addEnd(trailers: readonly string[]): void {
    this.#isWhole = true
    this.#trailers = trailers
  }

  /** Drops everything that was not sent. */
  clear(): void {
    this.#head = undefined
    this.#chunks.length = 0
    this.#isWhole = this.#ended
  }

  /** Sends one frame if that is possible. */
  sendOne(): SendResult {
    if (this.isEmpty) return 'empty'
    if (this.#writer.isFull) return 'full'
    const [chunk] = this.#chunks
    if (this.#head !== undefined) this.#sendHead(this.#head, chunk === undefined)
    else if (chunk !== undefined) {
      const result = this.#sendContent(chunk)
      if (result !== 'more') return result
    } else this.#sendEnd()
    return this.isEmpty ? 'empty' : 'more'
  }

  #sendHead(fields: readonly string[], isAll: boolean): void {
    const ends = isAll && this.#endsWithoutTrailers
    this.#head = undefined
    this.#begun = true
    this.#ended = ends
    this.#writer.headers(this.#stream, this.#status, fields, ends)
  }

  #sendContent(chunk: Buffer): SendResult {
    const room = Math.min(this.window, this.#writer.window, MAX_PAYLOAD)
    if (room <= 0) return this.window <= 0 ? 'stream-window' : 'connection-window'
    const at = this.#at
    const end = Math.min(chunk.length, at + room)
    const isSent = end === chunk.length
    const ends = isSent && this.#chunks.length === 1 && this.#endsWithoutTrailers
    if (isSent) this.#chunks.shift()
    this.#at = isSent ? 0 : end
    this.#ended = ends
    this.window -= end - at
    this.#writer.data(this.#stream, chunk, at, end, ends)
    return 'more'
  }

  #sendEnd(): void {
    this.#ended = true
    if (this.#trailers.length > 0) this.#writer.headers(this.#stream, 0, this.#trailers, true)
    else this.#writer.data(this.#stream, NOTHING, 0, 0, true)
  }

  get #endsWithoutTrailers(): boolean {
    return this.#isWhole && this.#trailers.length === 0
  }
}
