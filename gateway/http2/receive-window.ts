/** How much content a peer may send, on a stream or on the whole connection (RFC 9113 section 6.9). */
export class ReceiveWindow {
  readonly #size: number
  #left: number
  /** Content that was read or dropped, for which the peer may send as much again. */
  #consumed = 0

  constructor(size: number) {
    this.#size = size
    this.#left = size
  }

  /** Takes content that has arrived; false if the peer has sent more than it may. */
  take(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }

  /** Returns the increment to announce: 0 until half the window was consumed. */
  consume(bytes: number): number {
    this.#consumed += bytes
    if (2 * this.#consumed < this.#size) return 0
    const increment = this.#consumed
    this.#left += increment
    this.#consumed = 0
    return increment
  }
}
