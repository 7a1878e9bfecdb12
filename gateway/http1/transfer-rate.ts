/** Bytes per second that a client must send, or take, on average: slower ones are attacks rather than slow lines. */
export const LEAST_RATE = 240

/**
 * The patience with a client while a request waits for it to send or to read. It lasts for a pause of `idleMs`; waiting
 * uses it up, and each byte restores as much of it as LEAST_RATE allows for a byte. So a single byte now and then does
 * not keep a request alive.
 */
export class TransferRate {
  readonly #idleMs: number
  #leftMs: number
  /** When the wait began, or the last bytes came; undefined while the client is not waited for. */
  waitsSince: number | undefined

  constructor(idleMs: number) {
    this.#idleMs = idleMs
    this.#leftMs = idleMs
  }

  /** Waits for the client from now on; returns the time at which the patience ends. Times are in ms. */
  wait(now: number): number {
    this.waitsSince ??= now
    return this.waitsSince + this.#leftMs
  }

  /** The client is not waited for any more. */
  rest(now: number): void {
    if (this.waitsSince !== undefined) this.#leftMs = Math.max(0, this.#leftMs - (now - this.waitsSince))
    this.waitsSince = undefined
  }

  /** The client has sent, or taken, some bytes. */
  moved(bytes: number, now: number): void {
    const { waitsSince } = this
    this.rest(now)
    this.#leftMs = Math.min(this.#idleMs, this.#leftMs + (bytes * 1000) / LEAST_RATE)
    if (waitsSince !== undefined) this.waitsSince = now
  }
}
