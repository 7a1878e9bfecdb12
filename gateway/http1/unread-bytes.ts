import type { Socket } from 'node:net'

/** So much is kept of what comes before its time; then its sender has to wait. */
const MOST_BYTES = 64 * 1024
const MOST_PIECES = 64

/** What has come on a connection and nobody has read yet. Reading pauses while there is too much of it. */
export class UnreadBytes {
  readonly #socket: Socket
  #pieces: Buffer[] = []
  #bytes = 0
  #paused = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  add(chunk: Buffer): void {
    this.#pieces.push(chunk)
    this.#bytes += chunk.length
  }

  /** The first piece, which must be there. */
  shift(): Buffer {
    const chunk = this.#pieces.shift() as Buffer
    this.#bytes -= chunk.length
    return chunk
  }

  /** What of a piece nobody could read yet. */
  putBack(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#pieces.unshift(chunk)
    this.#bytes += chunk.length
  }

  /** Pauses or resumes the reading, according to what is here. */
  steer(): void {
    const isFull = this.#bytes > MOST_BYTES || this.#pieces.length > MOST_PIECES
    if (isFull === this.#paused) return
    this.#paused = isFull
    if (isFull) this.#socket.pause()
    else this.#socket.resume()
  }

  takeAll(): Buffer {
    const all = Buffer.concat(this.#pieces, this.#bytes)
    this.#pieces = []
    this.#bytes = 0
    return all
  }
}
