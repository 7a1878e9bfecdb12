import type { ServerHttp2Stream } from 'node:http2'
import type { Readable } from 'node:stream'
import { Prefix } from '../http1/prefix.js'
import type { BodyReader, CountedBody } from '../message.js'

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

/** Most bytes that a client sends before more are asked for: the window of a stream (RFC 9113 section 6.9.2). */
const WINDOW = 64 * 1024

/**
 * Keeps the frames of an upload that nobody reads in one buffer. Node would keep each in a Buffer of its own, and a client
 * can send one frame for every byte of its window: a hundred bytes of memory for each.
 */
export class HeldFrames {
  readonly #push: (chunk: Buffer | null) => boolean
  readonly #frames = new Prefix(WINDOW)
  #holds = true

  /** Holds from the start. Node hands over all frames by calling `push` of the stream. */
  constructor(stream: Pick<Readable, 'push'>) {
    this.#push = stream.push.bind(stream)
    stream.push = (chunk: Buffer | null) => this.#take(chunk)
  }

  hold(): void {
    this.#holds = true
  }

  /** Hands the held frames, and all further ones, to the stream. */
  release(): void {
    this.#holds = false
    if (!this.#frames.isEmpty) this.#push(this.#frames.takeAll())
  }

  /** False when Node should ask the client for no more. */
  #take(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.release()
      return this.#push(null)
    }
    if (!this.#holds) return this.#push(chunk)
    this.#frames.add(chunk)
    return false
  }
}
