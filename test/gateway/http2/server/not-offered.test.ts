/** HTTP/2 in the clear and where it was not negotiated, and HTTP/1.1 where HTTP/2 was: neither is understood as the other. */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { testGateway } from '../../../helpers/gateway.js'
import { OK, RawPeer, rawClient, rawUpstream, valuesOf } from '../../../helpers/raw.js'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import { answering } from '../../forward/gateway.js'
import { FrameClient, FrameLog, frame, getFrame, HEADERS, PREFACE, SETTINGS } from '../../listen/frames.js'
import { answerOf, onBothWires } from '../../listen/http2-scene.js'

const OPENING = Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0), getFrame(1)])
const UPGRADE = [
  'GET / HTTP/1.1',
  'Host: acme.localhost',
  'Connection: Upgrade, HTTP2-Settings',
  'Upgrade: h2c',
  'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
  '\r\n',
].join('\r\n')

/** All frames that have arrived. */
function framesIn({ unread }: RawPeer) {
  const log = new FrameLog()
  log.read(Buffer.from(unread, 'latin1'))
  return log.frames
}

/** A TLS connection with these protocols on offer. */
async function secured(t: Test, port: number, ALPNProtocols: string[]): Promise<RawPeer> {
  const socket = connect({ port, host: '127.0.0.1', ALPNProtocols, rejectUnauthorized: false })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  return new RawPeer(socket)
}

t.test('without TLS', async t => {
  const upstream = await rawUpstream(answering(OK))
  t.teardown(() => upstream.stop())
  const { url } = await testGateway(t, { upstream: upstream.url })
  const port = Number(new URL(url).port)
  const client = async (t: Test): Promise<RawPeer> => {
    const peer = await rawClient(port)
    t.teardown(() => peer.socket.destroy())
    return peer
  }

  t.test('HTTP/2 is spoken with a client that begins with its preface, however that is cut up', async t => {
    const session = connectHttp2(url)
    t.teardown(() => session.destroy())
    t.match(await answerOf(session.request({ ':authority': 'acme.localhost' })), { status: 200, body: 'ok' })
    for (const bytes of [1, 5, 16, 18, 23]) {
      const peer = await client(t)
      for (let at = 0; at < OPENING.length; at += bytes) {
        peer.socket.write(OPENING.subarray(at, at + bytes))
        await sleep(5)
      }
      await waitUntil('the response', () =>
        framesIn(peer).some(one => one.type === HEADERS && one.stream === 1),
      )
      t.equal(framesIn(peer)[0]?.type, SETTINGS, `${bytes} at a time`)
    }
  })

  t.test('not after a request, nor with anything else in place of its end', async t => {
    const count = upstream.connections.length
    const late = await client(t)
    late.send('GET / HTTP/1.1\r\nHost: acme.localhost\r\n\r\n')
    await late.message()
    late.socket.write(OPENING)
    t.match((await late.head()).line, /^HTTP\/1\.1 400 /)
    for (const text of [
      'PRI * HTTP/2.0\r\nHost: acme.localhost\r\n\r\nSM\r\n\r\n',
      'PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ]) {
      const peer = await client(t)
      peer.send(text)
      t.match((await peer.head()).line, /^HTTP\/1\.1 400 /)
      await waitUntil('the end', () => peer.ended || peer.closed)
    }
    const wrong = await client(t)
    wrong.send('PRI * HTTP/2.0\r\n\r\nGET / HTTP/1.1\r\n\r\n')
    await waitUntil('the end', () => wrong.ended || wrong.closed)
    t.equal(upstream.connections.length, count, 'the connection of before')
  })

  t.test('not by Node’s implementation, which has to negotiate it', async t => {
    const gateway = await testGateway(t, { upstream: upstream.url, http2: 'node' })
    const peer = await rawClient(Number(new URL(gateway.url).port))
    t.teardown(() => peer.socket.destroy())
    peer.socket.write(OPENING)
    t.match((await peer.head()).line, /^HTTP\/1\.1 (400|505) /)
  })

  t.test('an upgrade to HTTP/2 is ignored, and the upstream does not see it', async t => {
    const peer = await client(t)
    peer.send(UPGRADE)
    t.match((await peer.message()).line, /^HTTP\/1\.1 200 /)
    // A peer that had changed to HTTP/2 would read this as frames.
    peer.send('GET /second HTTP/1.1\r\nHost: acme.localhost\r\n\r\n')
    t.match((await peer.message()).line, /^HTTP\/1\.1 200 /)
  })
})

t.test('an upstream never sees an upgrade to HTTP/2', async t => {
  const upstream = await rawUpstream()
  t.teardown(() => upstream.stop())
  const { url } = await testGateway(t, { upstream: upstream.url })
  const client = await rawClient(Number(new URL(url).port))
  t.teardown(() => client.socket.destroy())
  client.send(UPGRADE)
  const message = await (await upstream.connection(0)).message()
  for (const name of ['upgrade', 'http2-settings']) t.same(valuesOf(message, name), [], name)
})

onBothWires(t, async (t, { scene }) => {
  const { port, upstream } = await scene(t, answering(OK))

  for (const protocols of [['http/1.1'], []]) {
    t.test(`HTTP/2 with ${protocols[0] ?? 'nothing'} negotiated is refused in HTTP/1.1`, async t => {
      const peer = await secured(t, port, protocols)
      peer.socket.write(OPENING)
      t.match((await peer.head()).line, /^HTTP\/1\.1 (400|505) /)
      await waitUntil('the end', () => peer.ended || peer.closed)
    })
  }

  for (const [what, text] of [
    ['HTTP/1.1', 'GET / HTTP/1.1\r\nHost: acme.localhost\r\n\r\n'],
    ['HTTP/1.1 after the first bytes of the preface', `${PREFACE.slice(0, 16)}\r\nGET / HTTP/1.1\r\n\r\n`],
    ['the preface in small letters', PREFACE.toLowerCase()],
    ['frames without the preface', frame(SETTINGS, 0, 0).toString('latin1')],
    ['zeros', '\0'.repeat(100)],
  ] as const) {
    t.test(`${what}, with HTTP/2 negotiated, ends the connection`, async t => {
      const peer = await secured(t, port, ['h2'])
      peer.send(text)
      await waitUntil('the end', () => peer.ended || peer.closed)
      t.notMatch(peer.unread, 'HTTP/1.1')
      t.equal(upstream.connections.length, 0)
    })
  }

  t.test('frames before SETTINGS end the connection', async t => {
    const peer = await secured(t, port, ['h2'])
    peer.send(PREFACE + getFrame(1).toString('latin1'))
    await waitUntil('the end', () => peer.ended || peer.closed)
    t.equal(upstream.connections.length, 0)
  })

  t.test('a client that does it right is served', async t => {
    const client = await FrameClient.open(t, port)
    client.send(getFrame(1))
    await client.end(1)
    t.same(client.statuses().get(1), [200])
  })
})
