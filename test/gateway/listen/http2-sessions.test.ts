/** What an HTTP/2 connection may cost, and how it ends. */
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { connect } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { OK, rawUpstream } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering, startGateway } from '../forward/gateway.js'
import {
  CANCEL,
  CONTINUATION,
  code,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FrameClient,
  frame,
  GOAWAY,
  HEADERS,
  INTERNAL_ERROR,
  NO_ERROR,
  PING,
  PREFACE,
  PRIORITY,
  RST_STREAM,
  requestFields,
  SETTINGS,
  WINDOW_UPDATE,
} from './frames.js'
import { answerOf, ask, onBothWires, open, openSession } from './http2-scene.js'
import { listenTls, secure, USUAL_TERMS } from './tls-listener.js'

/** Only since Node 22 can nghttp2's own limit be set. */
const NODE_LIMITS_RESETS = process.version.startsWith('v20.')

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

onBothWires(t, (t, { wire, certificate, scene }) => {
  t.test('a flood', async t => {
    const { port, upstream, session } = await scene(t, answering(OK))
    const head = (stream: number): Buffer =>
      frame(HEADERS, END_HEADERS | END_STREAM, stream, requestFields('/'))

    t.test('of requests reset as they are sent closes its connection', async t => {
      const client = await FrameClient.open(t, port)
      const before = upstream.connections.length
      for (let i = 0; i < 1000 && !client.closed; i++) {
        const stream = 2 * i + 1
        client.send(head(stream), frame(RST_STREAM, 0, stream, code(CANCEL)))
        if (i % 50 === 49) await sleep(1)
      }
      const goaway = await client.frame(GOAWAY)
      // Newer versions of Node notice it before we do, and send an error code of their own.
      t.ok([ENHANCE_YOUR_CALM, INTERNAL_ERROR].includes(goaway.payload.readUInt32BE(4)))
      await waitUntil('the end', () => client.closed)
      t.ok(upstream.connections.length - before < 210)
    })

    for (const [what, bytes] of [
      ['pings', frame(PING, 0, 0, Buffer.alloc(8))],
      ['settings', frame(SETTINGS, 0, 0)],
    ] as const) {
      t.test(`of ${what} closes its connection`, async t => {
        const client = await FrameClient.open(t, port)
        for (let i = 0; i < 300; i++) client.send(bytes)
        t.equal((await client.frame(GOAWAY)).payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
        await waitUntil('the end', () => client.closed)
      })
    }

    for (const [what, bytes] of [
      ['of WINDOW_UPDATE frames', frame(WINDOW_UPDATE, 0, 0, code(1))],
      ['of PRIORITY frames', frame(PRIORITY, 0, 1, Buffer.alloc(5, 1))],
    ] as const) {
      t.test(`${what} closes its connection, and others are served meanwhile`, async t => {
        const client = await FrameClient.open(t, port)
        const many = Buffer.concat(Array(1_000).fill(bytes))
        // The first request opens the connection upstream.
        await ask(session, {})
        const times: number[] = []
        for (let i = 0; i < 300 && !client.closed; i++) {
          client.send(many)
          const begun = performance.now()
          t.equal((await ask(session, {})).status, 200)
          times.push(performance.now() - begun)
          await sleep(10)
        }
        t.equal((await client.frame(GOAWAY)).payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
        await waitUntil('the end', () => client.closed)
        const middle = times.sort((a, b) => a - b)[times.length >> 1] ?? 0
        t.ok(middle < 100, `${middle} ms`)
      })
    }

    for (const [what, count, size, frames, type] of [
      ['of fields in one request resets its stream', 500, 16_000, 4, RST_STREAM],
      ['of CONTINUATION frames closes its connection', 700, 1_000, 60, GOAWAY],
    ] as const) {
      t.test(what, async t => {
        const client = await FrameClient.open(t, port)
        const fill = Array.from({ length: count }, (_, i) => [`x-${i}`, 'a'.repeat(110)] as const)
        const block = requestFields('/', fill)
        for (let i = 0; i < frames; i++) {
          const kind = i === 0 ? HEADERS : CONTINUATION
          const flags = (i === 0 ? END_STREAM : 0) | (i === frames - 1 ? END_HEADERS : 0)
          const end = i === frames - 1 ? block.length : (i + 1) * size
          client.send(frame(kind, flags, 1, block.subarray(i * size, end)))
        }
        const { payload } = await client.frame(type)
        if (type === RST_STREAM) t.equal(payload.readUInt32BE(), ENHANCE_YOUR_CALM)
        else await waitUntil('the end', () => client.closed)
      })
    }

    // After the others: from here on the client has used up its share of resets.
    t.test('of resets on several connections ends those beyond the limit of their client', async t => {
      const before = upstream.connections.length
      const clients = await Promise.all(Array.from({ length: 8 }, () => FrameClient.open(t, port)))
      // In two halves: newer versions of Node refuse streams beyond the 100 that may be open, even if they have been
      // reset.
      for (const first of [1, 181]) {
        const resets = Array.from({ length: 90 }, (_, i) => first + 2 * i).flatMap(stream => [
          head(stream),
          frame(RST_STREAM, 0, stream, code(CANCEL)),
        ])
        for (const client of clients) client.send(...resets, frame(PING, 0, 0, Buffer.alloc(8)))
        await waitUntil('all to be read', () =>
          clients.every(({ closed, frames }) => closed || frames.some(({ type }) => type === PING)),
        )
        for (const { frames } of clients) if (first === 1) frames.length = 0
      }
      const endOf = ({ frames }: FrameClient) => frames.find(({ type }) => type === GOAWAY)
      // Although each had sent fewer than a single connection may. The limit of their client leaves room for three.
      await waitUntil('the others to end', () => clients.filter(({ closed }) => closed).length >= 5)
      for (const client of clients) {
        const end = endOf(client)
        if (end !== undefined) t.equal(end.payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
      }
      t.ok(upstream.connections.length - before < 1_010)
      t.equal((await ask(session, {})).status, 200, 'a client that resets nothing is still served')
    })

    t.test('of random frames leaves no connection open', async t => {
      const anyFrame = fc
        .tuple(fc.nat(12), fc.nat(255), fc.nat(5), fc.uint8Array({ maxLength: 40 }))
        .map(([type, flags, stream, bytes]) => frame(type, flags, stream, Buffer.from(bytes)))
      await fc.assert(
        fc.asyncProperty(fc.array(anyFrame, { minLength: 1, maxLength: 8 }), async frames => {
          const client = await FrameClient.open(t, port)
          client.send(...frames)
          client.socket.end()
          await waitUntil('the end', () => client.closed)
        }),
        { numRuns: 25 },
      )
    })

    t.equal(session.remoteSettings.maxConcurrentStreams, 100)
    t.equal((await ask(session, {})).status, 200, 'other clients do not notice')
  })

  t.test('uploads that get a response do not count as resets', async t => {
    const { session } = await scene(t, answering(OK))
    for (let i = 0; i < 25; i++) {
      const asked = Array.from({ length: 10 }, () => ask(session, { ':method': 'POST' }, 'body'))
      for (const { status } of await Promise.all(asked)) if (status !== 200) t.equal(status, 200)
    }
    t.notOk(session.closed)
  })

  t.test(
    'resets that follow a response do not count',
    { skip: wire === 'node' && NODE_LIMITS_RESETS },
    async t => {
      const { port } = await scene(t, answering(OK))
      const client = await FrameClient.open(t, port)
      const answered = () => client.frames.filter(({ stream, flags }) => stream > 0 && flags & END_STREAM)
      for (let round = 0; round < 24; round++) {
        const streams = Array.from({ length: 50 }, (_, i) => 2 * (50 * round + i) + 1)
        const heads = streams.map(one => frame(HEADERS, END_HEADERS | END_STREAM, one, requestFields('/')))
        client.send(...heads)
        await waitUntil('the answers', () => client.closed || answered().length === 50 * (round + 1))
        client.send(...streams.map(one => frame(RST_STREAM, 0, one, code(NO_ERROR))))
      }
      t.equal(answered().length, 1_200)
      t.notOk(client.closed)
    },
  )

  t.test('responses the upstream breaks off do not count as resets by the client', async t => {
    const { session } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
      await sleep(5)
      peer.reset()
    })
    for (let i = 0; i < 25; i++) await Promise.allSettled(Array.from({ length: 10 }, () => ask(session, {})))
    t.notOk(session.closed)
  })

  t.test(
    'a request that arrives together with its reset gets no response, and the next one does',
    async t => {
      const { port } = await scene(t, answering(OK))
      const client = await FrameClient.open(t, port)
      const head = (stream: number): Buffer =>
        frame(HEADERS, END_HEADERS | END_STREAM, stream, requestFields(`/${stream}`))
      client.send(head(1), frame(RST_STREAM, 0, 1, code(CANCEL)), head(3))
      await waitUntil('the second answer', () => client.frames.some(one => one.stream === 3))
      t.notOk(client.frames.some(one => one.stream === 1))
      t.notOk(client.closed)
    },
  )

  for (const [what, bytes, headTimeout] of [
    ['sends no request in time', Buffer.alloc(0), 100],
    ['sends GOAWAY', frame(GOAWAY, 0, 0, Buffer.alloc(8)), 60_000],
    ['pings too often', Buffer.concat(Array(300).fill(frame(PING, 0, 0, Buffer.alloc(8)))), 60_000],
  ] as const) {
    t.test(`a client that ${what} and never ends its side is cut`, async t => {
      const { listener, port } = await listenTls(t, certificate, [], { headTimeout, http2: wire })
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      await secure(t, port, { socket, ALPNProtocols: ['h2'], rejectUnauthorized: false }).then(client => {
        client.allowHalfOpen = true
        client
          .on('error', () => {})
          .write(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0), bytes]))
      })
      t.equal(listener.connections, 1)
      await waitUntil('the connection to be cut', () => listener.connections === 0, 6_000)
    })
  }

  t.test('with all connections taken, the idle connection that has waited longest makes room', async t => {
    const { listener, port } = await listenTls(t, certificate, [], { maxConnections: 3, http2: wire })
    const url = `https://127.0.0.1:${port}`
    const sessions = []
    for (let i = 0; i < 3; i++) sessions.push(await openSession(t, url, certificate))
    const [first, second, third] = sessions as [ClientHttp2Session, ClientHttp2Session, ClientHttp2Session]
    t.equal((await ask(first, {})).status, 200)
    const left = once(second, 'goaway')
    const fourth = await openSession(t, url, certificate)
    t.same((await left)[0], NO_ERROR)
    await waitUntil('the end', () => second.destroyed)
    for (const session of [first, third, fourth]) t.equal((await ask(session, {})).status, 200)
    await waitUntil('the room', () => listener.connections === 3)
  })

  t.test('a drain finishes open requests, takes no new ones and closes idle connections', async t => {
    const upstream = await rawUpstream()
    t.teardown(() => upstream.stop())
    const { certFile: file, cert, key } = certificate
    const tls = { certificate: { file, cert, key }, ...USUAL_TERMS, log: quiet }
    const gateway = await startGateway(t, { url: upstream.url, tls, http2: wire })
    const url = `https://127.0.0.1:${gateway.port}`
    const [session, idle] = [await openSession(t, url, certificate), await openSession(t, url, certificate)]
    const running = open(session, {}, '')
    const peer = await upstream.connection(0)
    await peer.message()
    const drained = gateway.drain(5_000)
    await once(session, 'goaway')
    await waitUntil('the idle one to close', () => idle.destroyed)
    const late = async () => answerOf(session.request({ ':path': '/' }))
    await t.rejects(late(), { code: 'ERR_HTTP2_GOAWAY_SESSION' })
    peer.send(OK)
    t.equal((await answerOf(running)).body, 'ok')
    await drained
    await waitUntil('the end', () => session.destroyed)
  })
})
