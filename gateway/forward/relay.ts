import type { OutgoingResponse } from '../message.js'
import { passedTrailers } from './trailers.js'

/** The body of an upstream's answer on its way to the client, at the pace at which that reads. */
export class Relay {
  readonly #res: OutgoingResponse
  readonly #idleMs: number
  /** The last piece is kept until it is known whether the end comes with it: then both leave together. */
  #kept: Buffer | undefined

  /** The head must be written. A client that reads nothing for `idleMs` while something waits for it will be cut. */
  constructor(res: OutgoingResponse, idleMs: number) {
    this.#res = res
    this.#idleMs = idleMs
  }

  /** False when the client must read first. */
  write(chunk: Buffer): boolean {
    const before = this.#kept
    this.#kept = chunk
    return before === undefined || this.#send(before)
  }

  /** Sends what has come so far. False when the client must read first. */
  flush(): boolean {
    const kept = this.#kept
    this.#kept = undefined
    if (kept !== undefined) return this.#send(kept)
    this.#res.flush()
    return true
  }

  onDrain(): void {
    this.#res.limitReader(0)
  }

  end(trailers: readonly string[]): void {
    this.#res.end(this.#kept, passedTrailers(trailers))
    if (!this.#res.closed) this.#res.limitReader(this.#idleMs)
  }

  cut(): void {
    this.#res.cut()
  }

  #send(chunk: Buffer): boolean {
    if (this.#res.write(chunk)) return true
    this.#res.limitReader(this.#idleMs)
    return false
  }
}
