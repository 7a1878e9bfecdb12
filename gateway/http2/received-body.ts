import { Prefix } from '../http1/prefix.js'
import type { BodyReader, CountedBody } from '../message.js'
import { STREAM_WINDOW } from './limits.js'

/** The stream that a body arrives on. */
export interface BodyStream {
  /** A reader wants the body for the first time. */
  onBodyWanted(): void
  /** `bytes` have been read or dropped, so the peer may send as many more. */
  onConsumed(bytes: number): void
}

/**
 * The body of a message. What arrives in one read of the connection is handed over as one piece, however many frames it
 * came in; while no reader wants it, it is held, at most as much as the stream's window allows.
 */
export class ReceivedBody implements CountedBody {
  readonly length: number | undefined
  complete = false
  received = 0
  readonly #source: BodyStream
  /** Content of the current read. */
  readonly #fresh: Buffer[] = []
  /** Content of earlier reads. */
  #held: Prefix | undefined
  #reader: BodyReader | undefined
  #trailers: readonly string[] = []
  #ended = false
  #paused = false
  #dropped = false
  #aborted = false

  /** @param length the Content-Length, if there is one */
  constructor(length: number | undefined, source: BodyStream) {
    this.length = length
    this.#source = source
  }

  /** True once the peer has sent all of it. */
  get ended(): boolean {
    return this.#ended
  }

  /** True once a reader was attached. */
  get begun(): boolean {
    return this.#reader !== undefined
  }

  read(reader: BodyReader): void {
    if (this.#aborted) reader.onAbort()
    else if (this.complete) reader.onEnd(this.#trailers)
    else {
      const isFirst = this.#reader === undefined
      this.#reader = reader
      this.#paused = false
      if (isFirst) this.#source.onBodyWanted()
      this.deliver()
    }
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.deliver()
  }

  /** Takes content; `deliver` follows when the read has been parsed. */
  push(bytes: Buffer): void {
    this.received += bytes.length
    if (this.#dropped || this.#aborted) this.#source.onConsumed(bytes.length)
    else this.#fresh.push(bytes)
  }

  /** The peer has ended it; `deliver` follows when the read has been parsed. */
  end(trailers: readonly string[]): void {
    this.#ended = true
    this.#trailers = trailers
  }

  /** Hands over what has arrived, or holds it while no reader wants it. */
  deliver(): void {
    if (this.#aborted || this.complete) return
    if (this.#flows) {
      const piece = this.#take()
      if (piece !== undefined) {
        this.#source.onConsumed(piece.length)
        this.#reader?.onData(piece)
      }
    } else this.#hold()
    if (this.#ended && this.#isEmpty && !this.complete && !this.#aborted) {
      this.complete = true
      if (!this.#dropped) this.#reader?.onEnd(this.#trailers)
    }
  }

  /** From now on the rest is discarded. */
  drop(): void {
    if (this.#dropped || this.complete || this.#aborted) return
    this.#dropped = true
    const piece = this.#take()
    if (piece !== undefined) this.#source.onConsumed(piece.length)
    this.complete = this.#ended
  }

  /** The body has broken off before its end. */
  abort(): void {
    if (this.complete || this.#aborted) return
    this.#aborted = true
    const piece = this.#take()
    if (piece !== undefined) this.#source.onConsumed(piece.length)
    if (!this.#dropped) this.#reader?.onAbort()
  }

  get #flows(): boolean {
    return this.#reader !== undefined && !this.#paused
  }

  get #isEmpty(): boolean {
    return this.#fresh.length === 0 && this.#held?.isEmpty !== false
  }

  #hold(): void {
    if (this.#fresh.length === 0) return
    this.#held ??= new Prefix(STREAM_WINDOW)
    for (const piece of this.#fresh) this.#held.add(piece)
    this.#fresh.length = 0
  }

  /** Everything that has arrived, as one piece. */
  #take(): Buffer | undefined {
    if (this.#isEmpty) return undefined
    const [first] = this.#fresh
    if (first !== undefined && this.#fresh.length === 1 && this.#held === undefined) {
      this.#fresh.length = 0
      return first
    }
    this.#hold()
    const all = this.#held?.takeAll()
    this.#held = undefined
    return all
  }
}
