/** Opens sockets to one address, and reads from them. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'

/** Bytes that one read may take. */
const BUFFER = 64 * 1024
/** Up to so many are copied out of the buffer: cheaper than a new one. */
const COPIED = 4 * 1024
/** So long an open connection may be silent before the other end is asked whether it lives. */
const PROBE_AFTER_MS = 60_000

export interface Address {
  /** A name, or an IP address without brackets. */
  readonly host: string
  readonly port: number
  /** Absent for bare TCP. */
  readonly tls?: TlsTarget | undefined
}

export interface TlsTarget {
  /** Asked for in the handshake; '' where no name may be. The certificate is verified against it, or the host. */
  readonly servername: string
  /** PEM text of the authorities; absent: the public ones. */
  readonly ca: string | undefined
}

/** Hears what befalls a socket. */
export interface SocketReader {
  onOpen(): void
  /** `bytes` may be kept. True for `more` when the read may have left some behind. */
  onBytes(bytes: Buffer, more: boolean): void
  /** The other end has said its last. */
  onFin(): void
  onDrain(): void
  /** The socket is of no use any more; may come more than once. */
  onGone(error: Error): void
}

export class Connector {
  readonly #address: Address
  /** Made once: to read the authorities takes longer than to connect. */
  #context: SecureContext | undefined
  /** Of the last handshake, which the next one continues. */
  #session: Buffer | undefined

  constructor(address: Address) {
    this.#address = address
  }

  /** Connects. The socket's bytes are the reader's for good. */
  connect(reader: SocketReader): Socket {
    const socket = this.#address.tls === undefined ? this.#open(reader) : this.#openTls(reader)
    return listen(socket, reader)
  }

  /** As `connect`, but by `data` events, so that somebody else may read the socket later. */
  connectForTakeover(reader: SocketReader): Socket {
    if (this.#address.tls !== undefined) return this.connect(reader)
    const socket = connect(this.#options())
    socket.on('connect', () => reader.onOpen()).on('data', chunk => reader.onBytes(chunk, false))
    return listen(socket, reader)
  }

  #open(reader: SocketReader): Socket {
    let buffer = Buffer.allocUnsafeSlow(BUFFER)
    const callback = (count: number): boolean => {
      const bytes = buffer.subarray(0, count)
      if (count > COPIED) buffer = Buffer.allocUnsafeSlow(BUFFER)
      reader.onBytes(count > COPIED ? bytes : Buffer.from(bytes), count === BUFFER)
      return true
    }
    const socket = connect({ ...this.#options(), onread: { buffer: () => buffer, callback } })
    return socket.on('connect', () => reader.onOpen())
  }

  #openTls(reader: SocketReader): Socket {
    const { servername, ca } = this.#address.tls as TlsTarget
    this.#context ??= createSecureContext({ ca })
    const socket = connectTls({
      ...this.#options(),
      servername,
      secureContext: this.#context,
      session: this.#session,
      ALPNProtocols: ['http/1.1'],
    })
    socket.on('session', session => {
      this.#session = session
    })
    return socket.on('secureConnect', () => reader.onOpen()).on('data', chunk => reader.onBytes(chunk, false))
  }

  #options() {
    const { host, port } = this.#address
    return { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS }
  }
}

function listen(socket: Socket, reader: SocketReader): Socket {
  return socket
    .on('end', () => reader.onFin())
    .on('drain', () => reader.onDrain())
    .on('error', error => reader.onGone(error))
    .on('close', () => reader.onGone(new Error('the connection was closed')))
}
