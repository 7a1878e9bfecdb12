const NOTHING = Buffer.alloc(0)

/**
 * The first bytes of a body, and any more that arrived before its reader. In one buffer that grows: each of many small
 * pieces would cost far more than its bytes.
 */
export class Prefix {
  readonly #limit: number
  #held: Buffer = NOTHING
  #bytes = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  get isFull(): boolean {
    return this.#bytes >= this.#limit
  }

  add(chunk: Buffer): void {
    const bytes = this.#bytes + chunk.length
    // A copy of a small piece: the piece itself keeps alive all that was read with it.
    if (this.#bytes === 0)
      this.#held = 2 * chunk.length < chunk.buffer.byteLength ? Buffer.from(chunk) : chunk
    else {
      if (bytes > this.#held.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(2 * bytes, this.#limit)))
        this.#held.copy(larger, 0, 0, this.#bytes)
        this.#held = larger
      }
      chunk.copy(this.#held, this.#bytes)
    }
    this.#bytes = bytes
  }

  /** The prefix, cut to the limit. */
  start(): Buffer {
    return this.#held.subarray(0, Math.min(this.#bytes, this.#limit))
  }

  takeAll(): Buffer {
    const all = this.#held.subarray(0, this.#bytes)
    this.#held = NOTHING
    this.#bytes = 0
    return all
  }
}
