import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { type Received, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { RawPeer, rawClient, rawUpstream } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { listenTls, secure } from './tls-listener.js'

if (canMakeCertificates(t)) {
  const folder = t.testdir()
  const one = makeCertificate(folder, 'one')
  const two = makeCertificate(folder, 'two')
  const connect = (t: Test, port: number, options: ConnectionOptions = {}): Promise<TLSSocket> =>
    secure(t, port, { ca: [one.cert, two.cert], ...options })

  async function get(
    url: string,
    { headers = {}, ...options }: { headers?: Record<string, string>; agent?: Agent } = {},
  ): Promise<Received> {
    const sent = request(url, { ca: [one.cert, two.cert], servername: 'localhost', headers, ...options })
    sent.end()
    const [answer] = await once(sent, 'response')
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    return { status: answer.statusCode, headers: answer.headers, body, json: () => JSON.parse(body) }
  }

  t.test(
    'connections over the limit are closed before their handshake, and places are freed as others leave',
    async t => {
      const { port } = await listenTls(t, one, [], { maxConnections: 1 })
      const client = new RawPeer(await connect(t, port))
      await client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n').message()
      await t.rejects(connect(t, port), { code: 'ECONNRESET' }, 'the first has not sent all of its request')
      client.send('x')
      const next = await waitUntil('an idle connection to make room', async () => {
        t.match((await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()).line, / 200 /)
        return connect(t, port)
      })
      await waitUntil('the idle one to be closed', () => client.ended)
      const answer = await new RawPeer(next).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
      t.match(answer.line, / 200 /)
    },
  )

  t.test('plain HTTP on the TLS port gets 400 tls-required', async t => {
    const { port, refused } = await listenTls(t, one)
    const client = await rawClient(port)
    const answer = await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message({ tillClose: true })
    t.match(answer.line, 'HTTP/1.1 400')
    t.match(JSON.parse(answer.body), { code: 'tls-required', detail: /https:/ })
    t.same(refused, ['tls-required'])
  })

  t.test('bytes that are neither TLS nor HTTP, and TLS older than 1.2, end the connection', async t => {
    const { port } = await listenTls(t, one)
    for (const bytes of [
      '\x16\x03\x01\xff\xff',
      '\x00\x00\x00\x00',
      '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00',
    ]) {
      const client = (await rawClient(port)).send(bytes)
      client.end()
      await waitUntil('the end', () => client.closed)
    }
    // Otherwise newer versions of OpenSSL do not even offer it.
    const ciphers = 'DEFAULT@SECLEVEL=0'
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers } as const
    await t.rejects(connect(t, port, old), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' })
    t.equal((await get(`https://127.0.0.1:${port}/`)).status, 200, 'others are still served')
  })

  t.test('a gateway with TLS reports https, and ignores the identity fields of its clients', async t => {
    const seen: IncomingMessage[] = []
    const app = await startApp(t, (req, res) => {
      seen.push(req)
      res.end('hello')
    })
    const gateway = await testGateway(t, { upstream: app, tls: one })
    t.match(gateway.url, /^https:\/\/127\.0\.0\.1:\d+$/, 'the gateway’s own address is https')

    const headers = { host: 'acme.localhost', X_JA4_FINGERPRINT: 'a', 'x-Ja3-Fingerprint': 'b' }
    const spoofed = { 'X-Forwarded-Proto': 'http', x_sluice_project: 'other', 'X-Sluice-Plan': 'enterprise' }
    const answer = await get(`${gateway.url}/a`, { headers: { ...headers, ...spoofed } })
    t.same([answer.status, answer.body], [200, 'hello'])
    const fields = seen[0]?.headers ?? {}
    t.equal(fields['x-forwarded-proto'], 'https')
    t.match(fields.forwarded, /proto=https/)
    t.equal(fields['x-sluice-project'], 'acme')
    t.equal(fields['x-sluice-plan'], 'growth')
    t.same(
      Object.keys(fields).filter(name => /ja[34]|_/.test(name)),
      [],
      'no spelling of a fingerprint field passes',
    )

    const trusting = await testGateway(t, {
      upstream: app,
      tls: one,
      settings: 'trustedProxies: [127.0.0.1]',
    })
    await get(`${trusting.url}/a`, { headers: { ...headers, 'x-ja4-fingerprint': 'c' } })
    const passed = seen[1]?.headers ?? {}
    t.match(
      passed,
      { 'x-ja4-fingerprint': 'c', 'x-ja3-fingerprint': 'b' },
      'a trusted hop’s fingerprints pass',
    )
    t.notOk('x_ja4_fingerprint' in passed, 'only in the configured spelling')
  })

  t.test('WebSockets pass over TLS', async t => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    server.on('connection', socket => socket.on('message', data => socket.send(data)))
    t.teardown(() => server.close())
    const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const gateway = await testGateway(t, { upstream, tls: one })
    const socket = new WebSocket(`${gateway.url.replace('https', 'wss')}/live`, { ca: one.cert })
    await once(socket, 'open')
    socket.send('hello')
    const [echo] = await once(socket, 'message')
    t.equal(String(echo), 'hello')
    socket.terminate()
  })

  t.test('a response cut upstream looks cut, also to an HTTP/1.0 client', async t => {
    const upstream = await rawUpstream(async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
      await sleep(20)
      peer.reset()
    })
    t.teardown(() => upstream.stop())
    const gateway = await testGateway(t, { upstream: upstream.url, tls: one })
    const port = Number(new URL(gateway.url).port)
    for (const version of ['1.1', '1.0']) {
      const socket = await connect(t, port)
      const client = new RawPeer(socket).send(`GET / HTTP/${version}\r\nHost: acme.localhost\r\n\r\n`)
      await waitUntil('the end', () => client.closed)
      t.match(client.unread, /Content-Length: 10\r\n(.*\r\n)*\r\nhalf$/i)
      // Responses to 1.0 often have no length; then only a reset shows the cut.
      t.equal(client.error, version === '1.0' ? 'ECONNRESET' : undefined, version)
    }
  })

  t.test(
    'a reload serves the new certificate, and keeps the old one when the new one is invalid',
    async t => {
      const dir = t.testdir()
      const files = { certFile: `${dir}/tls.crt`, keyFile: `${dir}/tls.key` }
      const put = ({ certFile, keyFile }: typeof files): void => {
        copyFileSync(certFile, files.certFile)
        copyFileSync(keyFile, files.keyFile)
      }
      put(one)
      const app = await startApp(t, (_req, res) => res.end('hello'))
      const gateway = await testGateway(t, { upstream: app, tls: files })
      const port = Number(new URL(gateway.url).port)
      const servedName = async (): Promise<string> =>
        String((await connect(t, port)).getPeerCertificate().subject.CN)
      const old = new Agent({ keepAlive: true, maxSockets: 1 })
      t.teardown(() => old.destroy())
      t.equal((await get(gateway.url, { agent: old })).status, 200)
      t.equal(await servedName(), 'one')

      put(two)
      t.match(await gateway.reloader.reload('SIGHUP'), { result: 'loaded' })
      t.equal(await servedName(), 'two', 'new connections get the new certificate')
      t.equal((await get(gateway.url, { agent: old })).status, 200, 'open connections stay open')
      matchList(
        t,
        gateway.lines.filter(({ msg }) => /^Certificate/.test(String(msg))),
        [{ level: 'info', cert: files.certFile, validTo: /2\d{3}/ }],
      )

      for (const [what, text] of [
        ['the key of another certificate', one.key],
        ['a file without a key', 'nothing'],
      ] as const) {
        writeFileSync(files.keyFile, text)
        const refused = await gateway.reloader.reload('watch')
        t.match(refused, { result: 'refused', problems: [{ path: 'listen.tls.key' }] }, what)
        t.equal(await servedName(), 'two', 'the old certificate is still served')
      }
      put(one)
      await gateway.reloader.reload('watch')
      t.equal(await servedName(), 'one', 'a valid certificate is loaded after an invalid one')
    },
  )

  t.test('a drain closes idle connections, and cuts unfinished handshakes at its deadline', async t => {
    const { listener, port } = await listenTls(t, one)
    const idle = new RawPeer(await connect(t, port))
    await idle.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
    const silent = await rawClient(port)
    const startedAt = performance.now()
    await listener.drain(200)
    t.ok(performance.now() - startedAt < 4000)
    await waitUntil('both ends', () => idle.closed && silent.closed)
    t.ok(idle.ended, 'the idle connection is closed cleanly')
  })

  t.test('a drain does not wait for clients that do not go on with their handshake', async t => {
    const { listener, port } = await listenTls(t, one)
    const silent = await rawClient(port)
    const startedAt = performance.now()
    await listener.drain(9_000)
    t.ok(performance.now() - startedAt < 6_000)
    await waitUntil('the end', () => silent.closed || silent.ended)
  })

  t.test('with all connections taken, those without a handshake make room for new ones', async t => {
    const { listener, port } = await listenTls(t, one, [], { maxConnections: 2 })
    const silent = [await rawClient(port), await rawClient(port)]
    await waitUntil('both', () => listener.connections === 2)
    const late = new RawPeer(await connect(t, port))
    t.match((await late.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()).line, / 200 /)
    await waitUntil('the first to be closed', () => silent[0]?.closed || silent[0]?.ended)
    t.notOk(silent[1]?.closed)
  })
}
