/** Accepts TLS connections: certificate, handshake, fingerprints, and the choice between HTTP/1.1 and HTTP/2. */
import { constants, randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type SecureContextOptions, type TLSSocket } from 'node:tls'
import type { ErrorCode } from '../errors.js'
import { closeLingering } from '../http1/lingering-close.js'
import { refusalText } from '../http1/refusal.js'
import type { Arrival, Fingerprints } from '../message.js'
import type { Log } from '../types.js'
import { Certificate, type CertificatePair } from './certificate.js'
import { type ChallengeCertificate, challengeHandshakes } from './challenge-handshake.js'
import { certificateOf } from './client-certificate.js'
import { fingerprintsOf, peekHello } from './fingerprint.js'

/** Time limit for the ClientHello, and again for the rest of the handshake. */
const HANDSHAKE_MS = 10_000
/** The same during a drain, for all of it. */
const LAST_HANDSHAKE_MS = 1_000
/** A fatal alert (RFC 8446 section 6), which blames nothing that the client has sent. */
const INTERNAL_ERROR = '\x15\x03\x03\x00\x02\x02\x50'
const HTTP2 = 'h2'
const HTTP1 = 'http/1.1'

export interface TlsSettings {
  /** Undefined while there is none: until then, handshakes are refused. */
  readonly certificate: CertificatePair | undefined
  /** Whether clients are asked for a certificate. */
  readonly asksClients: boolean
  /** Answers the challenges of an authority; absent where none is asked. */
  readonly challenge?: ChallengeCertificate | undefined
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** TLS 1.2 ciphers, by OpenSSL's names. */
  readonly ciphers: readonly string[]
  /** Whether clients must send a certificate of the authorities, or may; where there are any. */
  readonly clientAuth: 'request' | 'require'
  readonly log: Log
}

const TLS13_CIPHERS = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256']

/** Takes connections after their handshake. */
export interface Protocols {
  http1(socket: TLSSocket, arrival: Arrival): void
  http2(socket: TLSSocket, arrival: Arrival): void
  /** The client sent plain HTTP and got an error response. */
  refused(code: ErrorCode, id: string, peer: string): void
}

export interface TlsFront {
  /** Takes a new TCP connection of the client at this address. */
  accept(socket: Socket, address: string): void
  /** For new connections. */
  replaceCertificate(pair: CertificatePair): void
  /** Closes the connection that has gone longest without completing its handshake. False if there is none. */
  closeLongest(): boolean
  /** From now on, handshakes that are not completed soon end their connections. */
  drain(): void
  /** Cuts every connection. */
  closeAllConnections(): void
}

interface Connection {
  readonly socket: Socket
  /** The client's. */
  readonly address: string
  fingerprints: Fingerprints | undefined
}

/**
 * Terminates TLS 1.2 and 1.3 with one certificate (RFC 9325). Throws if it cannot be used.
 */
export function createTlsFront(
  { log, minVersion, ciphers, clientAuth, asksClients, certificate: first, challenge }: TlsSettings,
  protocols: Protocols,
): TlsFront {
  /** Keyed by endpoints, because Node does not tell which TCP connection a finished handshake belongs to. */
  const open = new Map<string, Connection>()
  /** Those that have not completed their handshake, the oldest first. */
  const greeting = new Set<Connection>()

  const challenges = challenge && challengeHandshakes(challenge, HANDSHAKE_MS)
  const secure = createServer({
    ALPNProtocols: [HTTP2, HTTP1],
    handshakeTimeout: HANDSHAKE_MS,
    requestCert: asksClients,
    rejectUnauthorized: clientAuth === 'require',
  })
  const terms: SecureContextOptions = {
    minVersion,
    ciphers: [...TLS13_CIPHERS, ...ciphers].join(':'),
    // Renegotiation costs the server far more than the client.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  }
  const certificate = new Certificate(first, log, ({ cert, key, ca }) =>
    secure.setSecureContext({ cert, key, ca, ...terms }),
  )
  secure.on('secureConnection', socket => {
    const connection = open.get(endpointsOf(socket))
    // The client has reset the connection meanwhile, so its address is no longer known.
    if (connection === undefined) {
      socket.destroy()
      return
    }
    greeting.delete(connection)
    // A TLS socket cannot send a TCP reset, and some clients take any other close for the regular end of a response.
    socket.resetAndDestroy = () => {
      connection.socket.resetAndDestroy()
      return socket
    }
    const { address, fingerprints } = connection
    const arrival = {
      address,
      fingerprints,
      certificate: asksClients ? certificateOf(socket) : undefined,
    }
    if (socket.alpnProtocol === HTTP2) protocols.http2(socket, arrival)
    else protocols.http1(socket, arrival)
  })
  // Scanners and broken clients: the handshake has failed, and there is nothing else to do.
  secure.on('tlsClientError', (_error, socket) => socket.destroy())

  function accept(socket: Socket, address: string): void {
    const endpoints = endpointsOf(socket)
    const connection: Connection = { socket, address, fingerprints: undefined }
    open.set(endpoints, connection)
    greeting.add(connection)
    socket.on('close', () => {
      greeting.delete(connection)
      if (open.get(endpoints) === connection) open.delete(endpoints)
    })
    socket.on('error', () => socket.destroy())
    greet(connection)
  }

  async function greet(connection: Connection): Promise<void> {
    const { socket, address } = connection
    const timer = setTimeout(() => socket.destroy(), HANDSHAKE_MS)
    const hello = await peekHello(socket)
    clearTimeout(timer)
    if (socket.destroyed) return
    if (isPlainHttp(hello)) {
      const id = randomUUID()
      protocols.refused('tls-required', id, address)
      closeLingering(socket, refusalText('tls-required', id))
      return
    }
    // Not awaited: the result is there long before the end of the handshake, or never.
    fingerprintsOf(hello).then(found => {
      connection.fingerprints = found
    })
    if (challenges?.areMeantBy(hello)) challenges.accept(socket)
    else if (certificate.isThere) secure.emit('connection', socket)
    else closeLingering(socket, INTERNAL_ERROR)
  }

  return {
    accept,
    replaceCertificate: pair => certificate.replace(pair),
    closeLongest() {
      const [longest] = greeting
      if (longest === undefined) return false
      greeting.delete(longest)
      longest.socket.destroy()
      return true
    },
    drain() {
      setTimeout(() => {
        for (const { socket } of greeting) socket.destroy()
      }, LAST_HANDSHAKE_MS).unref()
    },
    closeAllConnections() {
      for (const { socket } of open.values()) socket.destroy()
    },
  }
}

function endpointsOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`
}

/** An upper-case letter, as in a method, where TLS has its record type. */
function isPlainHttp(bytes: Buffer): boolean {
  const [first = 0] = bytes
  return first >= 0x41 && first <= 0x5a
}
