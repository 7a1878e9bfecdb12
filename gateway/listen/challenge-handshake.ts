/** The handshakes in which an authority looks for a certificate of its own kind (TLS-ALPN-01, RFC 8737). */
import type { Socket } from 'node:net'
import { createSecureContext, createServer, type SecureContext } from 'node:tls'

const PROTOCOL = 'acme-tls/1'
/** The extension's list of protocols when it has just this one, as RFC 8737 section 3 asks. */
const OFFER = Buffer.from(
  `\x00${String.fromCharCode(PROTOCOL.length + 1, PROTOCOL.length)}${PROTOCOL}`,
  'latin1',
)

/** Certificate and key for a domain whose challenge is under way, in PEM form. */
export type ChallengeCertificate = (domain: string) => Promise<string | undefined>

export interface ChallengeHandshakes {
  /** True if the ClientHello at the start of `bytes` is that of an authority. */
  areMeantBy(bytes: Buffer): boolean
  accept(socket: Socket): void
}

export function challengeHandshakes(
  certificateOf: ChallengeCertificate,
  timeoutMs: number,
): ChallengeHandshakes {
  async function contextFor(domain: string): Promise<SecureContext | undefined> {
    const pem = await certificateOf(domain.toLowerCase())
    return pem === undefined ? undefined : createSecureContext({ cert: pem, key: pem })
  }
  const server = createServer({
    ALPNProtocols: [PROTOCOL],
    handshakeTimeout: timeoutMs,
    // Without a context there is no certificate, and the handshake fails.
    SNICallback: (domain, done) => void contextFor(domain).then(context => done(null, context), done),
  })
  // The authority has seen what it wanted to see.
  server.on('secureConnection', socket => socket.on('error', () => {}).end())
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return {
    areMeantBy: bytes => bytes.includes(OFFER),
    accept: socket => void server.emit('connection', socket),
  }
}
