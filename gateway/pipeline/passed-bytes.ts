import type { Takeover } from '../message.js'

/** What passes a client's connection from the moment it leaves HTTP. */
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
