import type { Socket } from 'node:net'
import {
  connectFault,
  FirstBytes,
  isHttp2Agreed,
  NO_ALPN,
  NO_SETTINGS,
  NO_STREAMS,
} from './other-protocol.js'

/** The beginning of a connection, until the upstream's SETTINGS have come, and why it can fail. */
export class Opening {
  /** HTTP/2 has begun on the socket, from our side. */
  begun = false
  readonly #socket: Socket
  readonly #connectMs: number
  readonly #firstBytes = new FirstBytes()

  constructor(socket: Socket, connectMs: number) {
    this.#socket = socket
    this.#connectMs = connectMs
  }

  /** The socket is open; the error if HTTP/2 cannot begin on it. */
  begin(): Error | undefined {
    if (!isHttp2Agreed(this.#socket)) return new Error(NO_ALPN)
    this.begun = true
    return undefined
  }

  /** Takes bytes, and returns those that may be read as HTTP/2. Throws if the upstream speaks HTTP/1.1. */
  read(bytes: Buffer): Buffer {
    return this.#firstBytes.add(bytes)
  }

  /** The SETTINGS have come; the error if they allow no request. */
  onSettings(maxStreams: number): Error | undefined {
    return maxStreams === 0 ? new Error(NO_STREAMS) : undefined
  }

  /** The upstream has closed the connection. */
  onFin(): Error {
    return new Error(NO_SETTINGS)
  }

  /** The socket has failed. */
  onGone(error: NodeJS.ErrnoException): Error {
    return this.begun ? error : connectFault(error)
  }

  /** `connectMs` have passed. */
  onLate(): Error {
    const missing = this.begun ? 'no SETTINGS, the beginning of HTTP/2,' : 'no connection'
    const error = new Error(`${missing} within ${this.#connectMs} ms`)
    return Object.assign(error, { code: 'ETIMEDOUT' })
  }
}
