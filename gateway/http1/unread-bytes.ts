import type { Socket } from 'node:net'

/** Above these limits the socket is paused, so that the client has to wait. */
const MOST_BYTES = 8 * 1024
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

  /** True while so much is kept that the client has to wait. */
  get isFull(): boolean {
    return this.#bytes > MOST_BYTES || this.#pieces.length > MOST_PIECES
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
    this.#shrink()
    const { isFull } = this
    if (isFull === this.#paused) return
    this.#paused = isFull
    if (isFull) this.#socket.pause()
    else this.#socket.resume()
  }

  /** The bytes that were read together with the kept ones would stay in memory with them. */
  #shrink(): void {
    const [first] = this.#pieces
    if (first === undefined || 2 * first.length >= first.buffer.byteLength) return
    const own = Buffer.allocUnsafeSlow(first.length)
    first.copy(own)
    this.#pieces[0] = own
  }

  takeAll(): Buffer {
    const all = Buffer.concat(this.#pieces, this.#bytes)
    this.#pieces = []
    this.#bytes = 0
    return all
  }
}
