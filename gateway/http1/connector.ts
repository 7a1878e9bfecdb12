/** Opens sockets to one address and reads from them. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'

/** Most bytes of one read. */
const BUFFER = 64 * 1024
/**
 * Most bytes of one read from a WebSocket's upstream. As much waits for a client that does not read, and there may be
 * thousands of those.
 */
const TUNNEL_BUFFER = 8 * 1024
/** Reads up to this many bytes are copied out of the buffer, which is cheaper than a new buffer. */
const COPIED = 4 * 1024
/** Idle time before the first TCP keep-alive probe. */
const PROBE_AFTER_MS = 60_000

export interface Address {
  /** A name, or an IP address without brackets. */
  readonly host: string
  readonly port: number
  /** Absent for bare TCP. */
  readonly tls?: TlsTarget | undefined
}

export interface TlsTarget {
  /** Server name for the handshake (SNI), or '' for none. The certificate is verified against it, or else the host. */
  readonly servername: string
  /** Trusted CA certificates as PEM text; the public ones when absent. */
  readonly ca: string | undefined
}

/** Receives the bytes and events of a socket. */
export interface SocketReader {
  onOpen(): void
  /** `bytes` may be kept. `more` is true when the read may not have emptied the socket. */
  onBytes(bytes: Buffer, more: boolean): void
  /** The other end has closed its side for writing. */
  onFin(): void
  onDrain(): void
  /** The socket failed or closed; may be called more than once. */
  onGone(error: Error): void
}

export class Connector {
  readonly #address: Address
  readonly #alpn: string
  /** Made once: parsing the CA certificates takes longer than connecting. */
  #context: SecureContext | undefined
  /** TLS session of the last handshake, resumed by the next one. */
  #session: Buffer | undefined

  /** @param alpn the protocol that is negotiated within TLS */
  constructor(address: Address, alpn = 'http/1.1') {
    this.#address = address
    this.#alpn = alpn
  }

  /** Connects. All bytes of the socket go to `reader`; use `connectForTakeover` to hand the socket over later. */
  connect(reader: SocketReader): Socket {
    const socket = this.#address.tls === undefined ? this.#open(reader) : this.#openTls(reader)
    return listen(socket, reader)
  }

  /** Like `connect`, but reads by `data` events, so that another reader can take the socket over. */
  connectForTakeover(reader: SocketReader): Socket {
    if (this.#address.tls !== undefined) return this.connect(reader)
    const buffer = Buffer.allocUnsafeSlow(TUNNEL_BUFFER)
    const callback = (count: number): boolean => socket.push(Buffer.from(buffer.subarray(0, count)))
    const socket: Socket = connect({ ...this.#options(), onread: { buffer, callback } })
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
      ALPNProtocols: [this.#alpn],
    })
    socket.on('session', session => {
      this.#session = session
    })
    return socket.on('secureConnect', () => reader.onOpen()).on('data', chunk => reader.onBytes(chunk, false))
  }

  #options() {
    const { host, port } = this.#address
    // A name may have IPv6 and IPv4 addresses, of which only some answer: they are tried in turn, a quarter of a second apart.
    return {
      host,
      port,
      autoSelectFamily: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    }
  }
}

function listen(socket: Socket, reader: SocketReader): Socket {
  return socket
    .on('end', () => reader.onFin())
    .on('drain', () => reader.onDrain())
    .on('error', error => reader.onGone(error))
    .on('close', () => reader.onGone(new Error('the connection was closed')))
}
