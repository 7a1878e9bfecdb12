/** Which TLS is accepted (RFC 9325): for TLS 1.2 only key exchanges with forward secrecy and authenticated ciphers. */
import type { ConnectionOptions } from 'node:tls'
import t, { type Test } from 'tap'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { startApp } from '../../helpers/http.js'
import { secure } from './tls-listener.js'

if (canMakeCertificates(t)) {
  const certificate = makeCertificate(t.testdir(), 'one', undefined, ['rsa:2048'])

  /** The version and cipher that a client with these options negotiates; undefined when it is rejected. */
  async function spoken(t: Test, url: string, wishes: ConnectionOptions): Promise<string | undefined> {
    try {
      const port = Number(new URL(url).port)
      const socket = await secure(t, port, {
        ca: [certificate.cert],
        ALPNProtocols: ['h2', 'http/1.1'],
        ...wishes,
      })
      return `${socket.getProtocol()} ${socket.getCipher().name}`
    } catch {
      return undefined
    }
  }

  /** A TLS 1.2 client that offers one cipher, however weak. */
  const old = (cipher: string): ConnectionOptions => ({
    maxVersion: 'TLSv1.2',
    ciphers: `${cipher}:@SECLEVEL=0`,
  })

  t.test('only forward-secret, authenticated ciphers are accepted by default', async t => {
    const { url } = await testGateway(t, {
      upstream: await startApp(t, (_req, res) => res.end()),
      tls: certificate,
    })
    t.equal(await spoken(t, url, {}), 'TLSv1.3 TLS_AES_256_GCM_SHA384')
    for (const cipher of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305']) {
      t.equal(await spoken(t, url, old(cipher)), `TLSv1.2 ${cipher}`)
    }
    for (const cipher of [
      'AES128-GCM-SHA256',
      'AES256-SHA',
      'ECDHE-RSA-AES128-SHA',
      'ECDHE-RSA-AES256-SHA384',
    ]) {
      t.equal(await spoken(t, url, old(cipher)), undefined, `${cipher} is refused`)
      t.equal(await spoken(t, url, { ...old(cipher), ALPNProtocols: ['h2'] }), undefined, 'for HTTP/2 too')
    }
  })

  t.test('an operator can accept weaker ciphers, or only TLS 1.3', async t => {
    const upstream = await startApp(t, (_req, res) => res.end())
    const settings = { ciphers: '[AES128-GCM-SHA256]' }
    const lenient = await testGateway(t, { upstream, tls: { ...certificate, settings } })
    t.equal(await spoken(t, lenient.url, old('AES128-GCM-SHA256')), 'TLSv1.2 AES128-GCM-SHA256')
    t.equal(await spoken(t, lenient.url, old('ECDHE-RSA-AES128-GCM-SHA256')), undefined)
    t.match(await spoken(t, lenient.url, {}), /^TLSv1.3/, 'TLS 1.3 is accepted whatever the cipher list')

    const strict = await testGateway(t, {
      upstream,
      tls: { ...certificate, settings: { minVersion: 'TLSv1.3' } },
    })
    t.equal(await spoken(t, strict.url, { maxVersion: 'TLSv1.2' }), undefined)
    t.match(await spoken(t, strict.url, {}), /^TLSv1.3/)
  })
}
