import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Agent, request } from 'node:https'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { TrustedProxies } from '../../../gateway/listen/client.js'
import type { DoorSettings } from '../../../gateway/listen/door.js'
import { readFacts } from '../../../gateway/listen/facts.js'
import { fingerprintsOf } from '../../../gateway/listen/fingerprint.js'
import { createListener } from '../../../gateway/listen/server.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { type Received, startApp } from '../../helpers/http.js'
import { RawPeer, rawClient, rawUpstream } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import {
  ALPN,
  fingerprintsByHand,
  GROUPS,
  helloMessage,
  POINT_FORMATS,
  records,
  SERVER_NAME,
  SIGNATURES,
  VERSIONS,
} from './client-hello.js'
import { wideDoor } from './door.js'

const GREASE = 0x4a4a

t.test('fingerprints', async t => {
  t.test('are the published ones of published clients', async t => {
    // The example in FoxIO's description of JA4, a Chrome.
    const chrome = helloMessage(
      0x0303,
      [GREASE, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8].concat([
        0xc013, 0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
      ]),
      [
        [GREASE],
        SERVER_NAME('acme.test'),
        ...[0x17, 0xff01].map(id => [id] as const),
        GROUPS(GREASE, 0x1d),
        POINT_FORMATS(0),
        [0x23],
        ALPN('h2', 'http/1.1'),
        [0x05],
        SIGNATURES(0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601),
        ...[0x12, 0x33, 0x2d].map(id => [id] as const),
        VERSIONS(GREASE, 0x0304, 0x0303),
        ...[0x1b, 0x4469, 0x15].map(id => [id] as const),
      ],
    )
    t.equal((await fingerprintsOf(records(chrome)))?.ja4, 't13d1516h2_8daaf6152771_e5627efa2ab1')

    // The example in Salesforce's description of JA3.
    const old = helloMessage(
      769,
      [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4],
      [SERVER_NAME('acme.test'), GROUPS(23, 24, 25), POINT_FORMATS(0)],
    )
    t.equal((await fingerprintsOf(records(old)))?.ja3, 'ada70206e40642a3e4461f35503241d5')
  })

  t.test('do not change with the records a hello is cut into', async t => {
    const hello = helloMessage(0x0303, [0x1301], [SERVER_NAME('a.test'), VERSIONS(0x0304)])
    const whole = await fingerprintsOf(records(hello))
    t.ok(whole)
    t.same(await fingerprintsOf(records(hello, 20)), whole)
  })

  t.test('of bytes that are no hello are none, whatever the bytes', async t => {
    const hello = records(helloMessage(0x0303, [0x1301], [SERVER_NAME('a.test')]))
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.nat(hello.length), async (bytes, cut) => {
        const within = <T>(work: Promise<T>): Promise<T | undefined> =>
          Promise.race([work, sleep(20, undefined)])
        t.equal(await within(fingerprintsOf(Buffer.from(bytes))), undefined)
        await within(fingerprintsOf(Buffer.concat([hello.subarray(0, cut), bytes])))
      }),
      { numRuns: 100 },
    )
  })
})

/** A TCP relay that keeps the first bytes each client sends. */
async function relay(t: Test, port: number): Promise<{ port: number; first: Buffer[] }> {
  const first: Buffer[] = []
  const open = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connectTcp(port, '127.0.0.1')
    client.once('data', bytes => first.push(bytes))
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {})
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, first }
}

if (canMakeCertificates(t)) {
  const folder = t.testdir()
  const one = makeCertificate(folder, 'one')
  const two = makeCertificate(folder, 'two')
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const fingerprintHeaders = { ja3: 'x-ja3-fingerprint', ja4: 'x-ja4-fingerprint' }

  /** A listener alone, that answers each request with what it knows of it. */
  async function listen(t: Test, trusted: string[] = [], limits: Partial<DoorSettings> = {}) {
    const settings = { trusted: new TrustedProxies(trusted), fingerprintHeaders }
    const refused: string[] = []
    const listener = createListener(
      {
        request(req: IncomingMessage, res: ServerResponse) {
          const { ja3, ja4, host } = readFacts(req, settings)
          const body = JSON.stringify({ ja3, ja4, host })
          res.writeHead(200, ['Content-Length', String(body.length)]).end(body)
        },
        upgrade: (_req, res) => res.end(),
        refused: code => refused.push(code),
      },
      wideDoor(limits),
      { cert: one.certFile, key: one.keyFile, log },
    )
    const { port } = await listener.start('127.0.0.1', 0)
    t.teardown(() => listener.drain(0))
    return { listener, port, refused }
  }

  async function secure(t: Test, port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connect({ port, host: '127.0.0.1', ca: [one.cert, two.cert], ...options })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    return socket
  }

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

  t.test('the fingerprints of a connection are those of the bytes it began with', async t => {
    const { port } = await listen(t)
    const between = await relay(t, port)
    for (const options of [
      {},
      { ALPNProtocols: ['http/1.1'], servername: 'localhost' },
      { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    ] as ConnectionOptions[]) {
      const client = new RawPeer(await secure(t, between.port, options))
      const expected = fingerprintsByHand(between.first.at(-1) as Buffer)
      for (const path of ['/a', '/b']) {
        const answer = await client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).message()
        t.same(JSON.parse(answer.body), { ...expected, host: 'a' }, JSON.stringify(options))
      }
    }
  })

  t.test('a hello that comes byte by byte is served, and known', async t => {
    const { port } = await listen(t)
    const slow = createServer(client => {
      const upstream = connectTcp({ port, host: '127.0.0.1', noDelay: true })
      t.teardown(() => upstream.destroy())
      client.once('data', async bytes => {
        for (let at = 0; at < bytes.length; at += 40) {
          upstream.write(bytes.subarray(at, at + 40))
          await sleep(1)
        }
        client.pipe(upstream)
      })
      upstream.pipe(client)
    }).listen(0, '127.0.0.1')
    await once(slow, 'listening')
    t.teardown(() => slow.close())
    const client = new RawPeer(await secure(t, (slow.address() as AddressInfo).port))
    const answer = await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
    t.match(JSON.parse(answer.body), { ja3: /^[0-9a-f]{32}$/, ja4: /^t13i\d{4}00_/ })
  })

  t.test(
    'beyond the limit a connection ends before its handshake, and a place comes back with each that leaves',
    async t => {
      const { port, listener } = await listen(t, [], { maxConnections: 1 })
      const silent = connectTcp({ port, host: '127.0.0.1' }).on('error', () => {})
      t.teardown(() => silent.destroy())
      await waitUntil('the first connection', () => listener.connections === 1)
      await t.rejects(secure(t, port), 'one that has yet to shake hands takes a place too')
      silent.destroy()
      await waitUntil('its place to be free', () => listener.connections === 0)
      const client = new RawPeer(await secure(t, port))
      const next = await waitUntil('an idle connection to make room', async () => {
        t.match((await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()).line, / 200 /)
        return secure(t, port)
      })
      await waitUntil('the idle one to be closed', () => client.ended)
      const answer = await new RawPeer(next).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
      t.match(answer.line, / 200 /)
    },
  )

  t.test('a fingerprint field counts from a trusted hop alone, whose own TLS then does not', async t => {
    const field = 'x-ja4-fingerprint: t13d_client\r\nX_JA3_Fingerprint: spoofed\r\n'
    const { port } = await listen(t)
    const spoofed = new RawPeer(await secure(t, port))
    const own = JSON.parse((await spoofed.send(`GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n`).message()).body)
    t.match(own, { ja3: /^[0-9a-f]{32}$/, ja4: /^t13i/ })

    const behind = await listen(t, ['127.0.0.0/8'])
    const proxy = new RawPeer(await secure(t, behind.port))
    const told = await proxy.send(`GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n`).message()
    t.same(JSON.parse(told.body), { ja4: 't13d_client', host: 'a' })
    const twice = await proxy
      .send(`GET / HTTP/1.1\r\nHost: a\r\n${field}x-ja4-fingerprint: b\r\n\r\n`)
      .message()
    t.same(JSON.parse(twice.body), { host: 'a' }, 'of two values neither')
  })

  t.test('plain HTTP on this port is told so', async t => {
    const { port, refused } = await listen(t)
    const client = await rawClient(port)
    const answer = await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message({ tillClose: true })
    t.match(answer.line, 'HTTP/1.1 400')
    t.match(JSON.parse(answer.body), { code: 'tls-required', detail: /https:/ })
    t.same(refused, ['tls-required'])
  })

  t.test('what is neither TLS nor HTTP, and TLS older than 1.2, ends the connection', async t => {
    const { port } = await listen(t)
    for (const bytes of [
      '\x16\x03\x01\xff\xff',
      '\x00\x00\x00\x00',
      '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00',
    ]) {
      const client = (await rawClient(port)).send(bytes)
      client.end()
      await waitUntil('the end', () => client.closed)
    }
    await t.rejects(secure(t, port, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }))
    t.equal((await get(`https://127.0.0.1:${port}/`)).status, 200, 'and others are served')
  })

  t.test('a whole gateway', async t => {
    const seen: IncomingMessage[] = []
    const app = await startApp(t, (req, res) => {
      seen.push(req)
      res.end('hello')
    })
    const gateway = await testGateway(t, { upstream: app, tls: one })
    t.match(gateway.url, /^https:\/\/127\.0\.0\.1:\d+$/, 'the address it prints is https')

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
      'no fingerprint passes, in no spelling',
    )

    const trusting = await testGateway(t, {
      upstream: app,
      tls: one,
      settings: 'trustedProxies: [127.0.0.1]',
    })
    await get(`${trusting.url}/a`, { headers: { ...headers, 'x-ja4-fingerprint': 'c' } })
    const passed = seen[1]?.headers ?? {}
    t.match(passed, { 'x-ja4-fingerprint': 'c', 'x-ja3-fingerprint': 'b' }, 'a trusted hop is heard')
    t.notOk('x_ja4_fingerprint' in passed, 'in the spelling that is configured, and no other')
  })

  t.test('WebSockets pass', async t => {
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

  t.test('an answer that is cut upstream looks cut, also to a client of HTTP/1.0', async t => {
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
      const socket = await secure(t, port)
      const client = new RawPeer(socket).send(`GET / HTTP/${version}\r\nHost: acme.localhost\r\n\r\n`)
      await waitUntil('the end', () => client.closed)
      t.match(client.unread, /Content-Length: 10\r\n(.*\r\n)*\r\nhalf$/i)
      // Without a length, as many an answer to 1.0 comes, only a reset tells.
      t.equal(client.error, version === '1.0' ? 'ECONNRESET' : undefined, version)
    }
  })

  t.test('a new certificate', async t => {
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
      String((await secure(t, port)).getPeerCertificate().subject.CN)
    const old = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => old.destroy())
    t.equal((await get(gateway.url, { agent: old })).status, 200)
    t.equal(await servedName(), 'one')

    put(two)
    t.match(await gateway.reloader.reload('SIGHUP'), { result: 'loaded' })
    t.equal(await servedName(), 'two', 'is what new connections get')
    t.equal((await get(gateway.url, { agent: old })).status, 200, 'and old ones live on')
    t.match(
      gateway.lines.filter(({ msg }) => /^Certificate/.test(String(msg))),
      [{ level: 'info', cert: files.certFile, validTo: /2\d{3}/ }],
    )

    for (const [what, text] of [
      ['the key of another', one.key],
      ['no key', 'nothing'],
    ] as const) {
      writeFileSync(files.keyFile, text)
      const refused = await gateway.reloader.reload('watch')
      t.match(refused, { result: 'refused', problems: [{ path: 'listen.tls.key' }] }, what)
      t.equal(await servedName(), 'two', 'is refused, and the old one stays')
    }
    put(one)
    await gateway.reloader.reload('watch')
    t.equal(await servedName(), 'one', 'a good one after a bad one counts')
  })

  t.test('drain ends idle connections, and handshakes at the deadline', async t => {
    const { listener, port } = await listen(t)
    const idle = new RawPeer(await secure(t, port))
    await idle.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
    const silent = await rawClient(port)
    const startedAt = performance.now()
    await listener.drain(200)
    t.ok(performance.now() - startedAt < 1000)
    await waitUntil('both ends', () => idle.closed && silent.closed)
    t.ok(idle.ended, 'with a farewell where there was time for it')
  })
}
