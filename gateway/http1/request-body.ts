import type { BodyReader, CountedBody } from '../message.js'
import { BodyDecoder } from './body-decoder.js'
import type { Framing } from './message.js'

/** The connection that a body arrives on. */
export interface BodySource {
  /** A reader wants the body, from its first byte or after a pause. */
  onBodyWanted(): void
  onBodyEnd(): void
}

/** The body of a request. Its connection pushes the bytes in, and holds them back while no reader wants them. */
export class RequestBody implements CountedBody {
  readonly length: number | undefined
  complete = false
  received = 0
  /** The rest is read and discarded. */
  dropped = false
  readonly #source: BodySource
  readonly #decoder: BodyDecoder
  #reader: BodyReader | undefined
  #trailers: readonly string[] = []
  #awaits100: boolean
  #paused = false
  #aborted = false

  /** `awaits100`: the client waits for a 100 before it sends the body. */
  constructor(framing: Framing, awaits100: boolean, source: BodySource) {
    this.length = framing.kind === 'length' ? framing.bytes : undefined
    this.#source = source
    this.#awaits100 = awaits100
    this.#decoder = new BodyDecoder(framing, this)
  }

  get awaits100(): boolean {
    return this.#awaits100
  }

  /** True when a 100 is due; only the first call returns true. */
  takeExpectation(): boolean {
    const isDue = this.#awaits100
    this.#awaits100 = false
    return isDue
  }

  get aborted(): boolean {
    return this.#aborted
  }

  /** True once a reader was attached. */
  get begun(): boolean {
    return this.#reader !== undefined
  }

  /** True when more bytes may be pushed. */
  get flows(): boolean {
    return !this.complete && !this.#aborted && (this.dropped || (this.#reader !== undefined && !this.#paused))
  }

  read(reader: BodyReader): void {
    if (this.#aborted) reader.onAbort()
    else if (this.complete) reader.onEnd(this.#trailers)
    else {
      this.#reader = reader
      this.#paused = false
      this.#source.onBodyWanted()
    }
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    if (!this.complete) this.#source.onBodyWanted()
  }

  /** Takes bytes of the connection; returns those after the end of the body. Throws WireError. */
  push(bytes: Buffer): Buffer {
    return this.#decoder.push(bytes)
  }

  /** From now on the rest is read and discarded. */
  drop(): void {
    this.dropped = true
  }

  /** The body has broken off before its end. */
  abort(): void {
    if (this.complete || this.#aborted) return
    this.#aborted = true
    if (!this.dropped) this.#reader?.onAbort()
  }

  /** Called by the decoder. */
  onData(chunk: Buffer): void {
    this.received += chunk.length
    if (!this.dropped) this.#reader?.onData(chunk)
  }

  /** Called by the decoder. */
  onEnd(trailers: readonly string[]): void {
    this.complete = true
    this.#trailers = trailers
    this.#source.onBodyEnd()
    if (!this.dropped) this.#reader?.onEnd(trailers)
  }
}
