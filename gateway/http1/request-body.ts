import type { BodyReader, CountedBody } from '../message.js'
import { BodyDecoder } from './body-decoder.js'
import type { Framing } from './message.js'

/** The connection that a body comes on. */
export interface BodySource {
  /** The body can be taken now, from its first byte or after a pause. */
  onBodyWanted(): void
  onBodyEnd(): void
}

/** A request's body on its connection, which gives it the bytes and keeps those that nobody wants yet. */
export class RequestBody implements CountedBody {
  readonly length: number | undefined
  complete = false
  received = 0
  /** The answer is out: what still comes is for nobody. */
  dropped = false
  readonly #source: BodySource
  readonly #decoder: BodyDecoder
  #reader: BodyReader | undefined
  #trailers: readonly string[] = []
  #awaits100: boolean
  #paused = false
  #aborted = false

  /** `awaits100`: the client sends it when it has seen a 100. */
  constructor(framing: Framing, awaits100: boolean, source: BodySource) {
    this.length = framing.kind === 'length' ? framing.bytes : undefined
    this.#source = source
    this.#awaits100 = awaits100
    this.#decoder = new BodyDecoder(framing, this)
  }

  get awaits100(): boolean {
    return this.#awaits100
  }

  /** True when a 100 is due; then that is done. */
  takeExpectation(): boolean {
    const isDue = this.#awaits100
    this.#awaits100 = false
    return isDue
  }

  get aborted(): boolean {
    return this.#aborted
  }

  /** True when somebody reads it, or has. */
  get begun(): boolean {
    return this.#reader !== undefined
  }

  /** True when its next bytes can be pushed. */
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

  /** Takes bytes of the connection; returns what lies behind the body. Throws WireError. */
  push(bytes: Buffer): Buffer {
    return this.#decoder.push(bytes)
  }

  /** What still comes is read and forgotten. */
  drop(): void {
    this.dropped = true
  }

  /** There will be no more of it, and it is not complete. */
  abort(): void {
    if (this.complete || this.#aborted) return
    this.#aborted = true
    if (!this.dropped) this.#reader?.onAbort()
  }

  /** Of the decoder. */
  onData(chunk: Buffer): void {
    this.received += chunk.length
    if (!this.dropped) this.#reader?.onData(chunk)
  }

  /** Of the decoder. */
  onEnd(trailers: readonly string[]): void {
    this.complete = true
    this.#trailers = trailers
    this.#source.onBodyEnd()
    if (!this.dropped) this.#reader?.onEnd(trailers)
  }
}
