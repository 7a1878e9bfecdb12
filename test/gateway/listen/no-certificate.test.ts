/** A TLS port that waits for its certificate, and the handshakes of an authority that checks a domain (RFC 8737). */
import { once } from 'node:events'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { createListener } from '../../../gateway/listen/server.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { rawClient } from '../../helpers/raw.js'
import { wideDoor } from './connection-cap.js'
import { reply } from './listener.js'
import { USUAL_TERMS } from './tls-listener.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }

async function start(t: Test, challenges: Record<string, string>, clientCa?: string) {
  const listener = createListener(
    { request: (_req, res) => reply(res), upgrade: (_req, res) => reply(res) },
    wideDoor(),
    {
      ...USUAL_TERMS,
      certificate: undefined,
      ...(clientCa !== undefined && { asksClients: true, clientAuth: 'require' }),
      challenge: async domain => challenges[domain],
      log,
    },
  )
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  /** The name in the certificate and the protocol; or the code of the error. */
  const shake = (options: ConnectionOptions): Promise<string> =>
    new Promise(resolve => {
      const socket: TLSSocket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
      socket.once('secureConnect', () => {
        resolve(`${socket.getPeerCertificate().subject.CN} ${socket.alpnProtocol}`)
        socket.destroy()
      })
    })
  return { listener, port, shake }
}

if (canMakeCertificates(t)) {
  const folder = t.testdir()
  const served = makeCertificate(folder, 'served', 'DNS:api.acme.test')
  const challenge = makeCertificate(folder, 'challenge', 'DNS:api.acme.test')
  const authority = { servername: 'api.acme.test', ALPNProtocols: ['acme-tls/1'] }

  t.test('without a certificate a handshake gets an alert that blames nothing it sent', async t => {
    const { listener, shake, port } = await start(t, {})
    for (const options of [{}, { minVersion: 'TLSv1.3' }, { maxVersion: 'TLSv1.2' }] as ConnectionOptions[]) {
      t.match(await shake(options), /ALERT_INTERNAL_ERROR/)
    }
    const plain = await rawClient(port)
    const answer = await plain.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message({ tillClose: true })
    t.match(answer.line, /400/, 'plain HTTP is still told')
    const { certFile: file, cert, key } = served
    listener.replaceCertificate({ file, cert, key })
    t.match(await shake({ ALPNProtocols: ['http/1.1'] }), 'served http/1.1', 'until there is one')
  })

  t.test('an authority sees the certificate of the challenge, and nobody else does', async t => {
    const { listener, shake } = await start(t, { 'api.acme.test': challenge.cert + challenge.key })
    t.equal(await shake(authority), 'challenge acme-tls/1', 'also before there is a certificate')
    t.equal(await shake({ ...authority, servername: 'API.acme.test' }), 'challenge acme-tls/1')
    const { certFile: file, cert, key } = served
    listener.replaceCertificate({ file, cert, key })
    t.equal(await shake(authority), 'challenge acme-tls/1')
    t.equal(await shake({ servername: 'api.acme.test' }), 'served false')
    t.match(await shake({ ...authority, ALPNProtocols: ['acme-tls/1', 'h2'] }), 'served h2')
    t.match(await shake({ ...authority, servername: 'shop.test' }), /ALERT/, 'a domain without a challenge')
    t.match(await shake({ ALPNProtocols: ['acme-tls/1'] }), /ALERT/, 'no domain')
  })

  t.test('no request is answered in such a handshake, and no client certificate is asked for', async t => {
    const { port } = await start(t, { 'api.acme.test': challenge.cert + challenge.key }, served.certFile)
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...authority })
    await once(socket, 'secureConnect')
    let text = ''
    socket.on('data', chunk => {
      text += chunk
    })
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: api.acme.test\r\n\r\n')
    await once(socket, 'close')
    t.equal(text, '')
  })
}
