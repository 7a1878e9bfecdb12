/** JA3 and JA4 of a connection's ClientHello. */
import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { fingerprintsOf } from '../../../gateway/listen/fingerprint.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { RawPeer } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'
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
import { listenTls, secure } from './tls-listener.js'

const GREASE = 0x4a4a

t.test('fingerprints', async t => {
  t.test('match the published examples for published clients', async t => {
    // The example in FoxIO's description of JA4, from a Chrome.
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

  t.test('do not depend on how a ClientHello is cut into records', async t => {
    const hello = helloMessage(0x0303, [0x1301], [SERVER_NAME('a.test'), VERSIONS(0x0304)])
    const whole = await fingerprintsOf(records(hello))
    t.ok(whole)
    t.same(await fingerprintsOf(records(hello, 20)), whole)
  })

  t.test('are undefined for bytes that are not a ClientHello', async t => {
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

/** A TCP relay that records the first bytes each client sends. */
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
  const one = makeCertificate(t.testdir(), 'one')
  const connect = (t: Test, port: number, options: ConnectionOptions = {}): Promise<TLSSocket> =>
    secure(t, port, { ca: one.cert, ...options })

  t.test('the fingerprints of a connection match those computed from its first bytes', async t => {
    const { port } = await listenTls(t, one)
    const between = await relay(t, port)
    for (const options of [
      {},
      { ALPNProtocols: ['http/1.1'], servername: 'localhost' },
      { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    ] as ConnectionOptions[]) {
      const client = new RawPeer(await connect(t, between.port, options))
      const expected = fingerprintsByHand(between.first.at(-1) as Buffer)
      for (const path of ['/a', '/b']) {
        const answer = await client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).message()
        t.same(JSON.parse(answer.body), { ...expected, host: 'a' }, JSON.stringify(options))
      }
    }
  })

  t.test('a ClientHello that arrives in pieces is served and fingerprinted', async t => {
    const { port } = await listenTls(t, one)
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
    const client = new RawPeer(await connect(t, (slow.address() as AddressInfo).port))
    const answer = await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
    t.match(JSON.parse(answer.body), { ja3: /^[0-9a-f]{32}$/, ja4: /^t13i\d{4}00_/ })
  })

  t.test(
    'a fingerprint field counts only from a trusted hop, and then replaces the fingerprints of its TLS',
    async t => {
      const field = 'x-ja4-fingerprint: t13d_client\r\nX_JA3_Fingerprint: spoofed\r\n'
      const { port } = await listenTls(t, one)
      const spoofed = new RawPeer(await connect(t, port))
      const own = JSON.parse((await spoofed.send(`GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n`).message()).body)
      t.match(own, { ja3: /^[0-9a-f]{32}$/, ja4: /^t13i/ })

      const behind = await listenTls(t, one, ['127.0.0.0/8'])
      const proxy = new RawPeer(await connect(t, behind.port))
      const told = await proxy.send(`GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n`).message()
      t.same(JSON.parse(told.body), { ja4: 't13d_client', host: 'a' })
      const twice = await proxy
        .send(`GET / HTTP/1.1\r\nHost: a\r\n${field}x-ja4-fingerprint: b\r\n\r\n`)
        .message()
      t.same(JSON.parse(twice.body), { host: 'a' }, 'two values count as neither')
    },
  )
}
