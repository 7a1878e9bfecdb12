/** The listen room alone, behind TLS: it answers each request with the facts it has read. */
import { once } from 'node:events'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { TLS12_CIPHERS } from '../../../config/schema/listen.js'
import { TrustedProxies } from '../../../gateway/listen/client.js'
import { readFacts } from '../../../gateway/listen/facts.js'
import { createListener, type ListenerSettings } from '../../../gateway/listen/server.js'
import type { TestCertificate } from '../../helpers/certificates.js'
import { credentialIn } from '../../helpers/credentials.js'
import { wideDoor } from './connection-cap.js'
import { reply } from './listener.js'

/** The default TLS settings. */
export const USUAL_TERMS = {
  minVersion: 'TLSv1.2',
  ciphers: TLS12_CIPHERS,
  clientAuth: 'request',
  asksClients: false,
} as const

const log = { debug() {}, info() {}, warn() {}, error() {} }
const fingerprintHeaders = { ja3: 'x-ja3-fingerprint', ja4: 'x-ja4-fingerprint' }

/** Starts a listener that answers each request with the facts it has read. */
export async function listenTls(
  t: Test,
  { certFile: file, cert, key }: TestCertificate,
  trusted: string[] = [],
  limits: Partial<ListenerSettings> = {},
) {
  const settings = { trusted: new TrustedProxies(trusted), fingerprintHeaders, credentialIn }
  const refused: string[] = []
  /** The address of each request's client. */
  const served: string[] = []
  const listener = createListener(
    {
      request(req, res) {
        served.push(req.peer.address)
        const { ja3, ja4, host } = readFacts(req, settings)
        const body = JSON.stringify({ ja3, ja4, host })
        reply(res, body)
      },
      upgrade: (_req, res) => reply(res),
      refused: code => refused.push(code),
    },
    wideDoor(limits),
    { certificate: { file, cert, key }, ...USUAL_TERMS, log },
  )
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  return { listener, port, refused, served }
}

/** A TLS connection after its handshake. */
export async function secure(t: Test, port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ...options })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}
