import type { Takeover } from '../message.js'

/** Counts the bytes on a client's connection after it has left HTTP. */
export class PassedBytes {
  readonly #socket: Takeover['socket']
  readonly #readBefore: number
  readonly #writtenBefore: number

  constructor({ socket, head }: Takeover) {
    this.#socket = socket
    this.#readBefore = socket.bytesRead - head.length
    this.#writtenBefore = socket.bytesWritten
  }

  get read(): number {
    return this.#socket.bytesRead - this.#readBefore
  }

  get written(): number {
    return this.#socket.bytesWritten - this.#writtenBefore
  }
}
