import type { ServerHttp2Stream } from 'node:http2'
import type { BodyReader, CountedBody } from '../message.js'
import { HeldFrames } from './held-frames.js'

export interface BodyEvents {
  /** Called once, when the body is first read. */
  wanted(): void
  /** `bytes` of the body have arrived, in one frame. */
  received(bytes: number): void
}

/** The body of a request on an HTTP/2 stream. */
export class StreamBody implements CountedBody {
  readonly length: number | undefined
  complete = false
  received = 0
  readonly #stream: ServerHttp2Stream
  readonly #events: BodyEvents
  readonly #held: HeldFrames
  #reader: BodyReader | undefined
  #trailers: readonly string[] = []
  #aborted = false

  constructor(stream: ServerHttp2Stream, length: string | undefined, events: BodyEvents) {
    this.#stream = stream
    this.length = length === undefined ? undefined : Number(length)
    this.#events = events
    this.#held = new HeldFrames(stream)
    stream.on('trailers', (_fields, _flags, raw: string[] = []) => {
      this.#trailers = raw
    })
    // Node reports the end of an empty body at once, even if it is not read.
    stream.on('end', () => this.#onEnd())
    stream.on('aborted', () => this.#onAbort()).on('close', () => this.#onAbort())
  }

  read(reader: BodyReader): void {
    const isFirst = this.#reader === undefined
    this.#reader = reader
    if (this.#aborted) reader.onAbort()
    else if (this.complete) reader.onEnd(this.#trailers)
    else {
      if (isFirst) {
        this.#events.wanted()
        this.#stream.on('data', (chunk: Buffer) => {
          this.received += chunk.length
          this.#events.received(chunk.length)
          this.#reader?.onData(chunk)
        })
      }
      this.resume()
    }
  }

  pause(): void {
    this.#held.hold()
    this.#stream.pause()
  }

  resume(): void {
    this.#held.release()
    this.#stream.resume()
  }

  #onEnd(): void {
    // Node also emits `end` on a stream that the client has reset.
    if (this.complete || this.#stream.closed) return
    this.complete = true
    this.#reader?.onEnd(this.#trailers)
  }

  #onAbort(): void {
    if (this.complete || this.#aborted) return
    this.#aborted = true
    this.#reader?.onAbort()
  }
}
