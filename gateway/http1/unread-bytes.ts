import type { Socket } from 'node:net'

/** Above these limits the socket is paused, so that the client has to wait. */
const MOST_BYTES = 16 * 1024
const MOST_PIECES = 64

/** The bytes received on a connection that are not handled yet. Reading pauses while there are too many. */
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

  /** Takes the first piece; there must be one. */
  shift(): Buffer {
    const chunk = this.#pieces.shift() as Buffer
    this.#bytes -= chunk.length
    return chunk
  }

  /** Returns the rest of a piece that cannot be handled yet. */
  putBack(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#pieces.unshift(chunk)
    this.#bytes += chunk.length
  }

  /** Pauses or resumes the socket, according to how much is kept. */
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
