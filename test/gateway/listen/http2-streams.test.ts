/** HTTP/2 streams that are sent, reset, cut or stalled, each without effect on the others. */
import { once } from 'node:events'
import { type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2'
import t from 'tap'
import { OK } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering } from '../forward/gateway.js'
import {
  CANCEL,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  FrameClient,
  frame,
  HEADERS,
  NO_ERROR,
  RST_STREAM,
  requestFields,
  WINDOW_UPDATE,
} from './frames.js'
import { type Answer, answerOf, ask, onBothWires, open } from './http2-scene.js'

onBothWires(t, (t, { certificate, scene }) => {
  t.test(
    'requests in progress have the limits of connections, whatever the number of connections',
    async t => {
      const limits = 'maxConnectionsPerClient: 4, maxConnections: 6'
      const { session, gateway, upstream } = await scene(t, undefined, { limits })
      const connect = async (localAddress: string) => {
        const other = connectHttp2(gateway.url, { ca: certificate.cert, localAddress } as object)
        t.teardown(() => other.destroy())
        await once(other, 'connect')
        return other
      }
      const refusalOf = (stream: ClientHttp2Stream) =>
        new Promise(resolve => stream.once('close', () => resolve(stream.rstCode)))
      const second = await connect('127.0.0.1')
      const own = [session, session, second, second].map(each => open(each, {}, ''))
      const arrived = async (count: number) =>
        waitUntil(
          'the requests',
          () => upstream.connections.filter(({ unread }) => unread !== '').length === count,
        )
      await arrived(4)
      t.equal(await refusalOf(open(second, {}, '')), constants.NGHTTP2_REFUSED_STREAM)
      const other = await connect('127.0.0.2')
      open(other, {}, '')
      open(other, {}, '')
      await arrived(6)
      t.equal(await refusalOf(open(other, {}, '')), constants.NGHTTP2_REFUSED_STREAM, 'all are taken')
      own[0]?.close(constants.NGHTTP2_CANCEL)
      await waitUntil('room', async () => {
        const stream = open(session, {}, '')
        const refused = refusalOf(stream)
        const admitted = arrived(7).then(() => 0)
        return (await Promise.race([refused, admitted])) === 0
      })
    },
  )

  t.test('requests with many fields count as several', async t => {
    const limits = 'maxConnectionsPerClient: 4'
    const { session, upstream } = await scene(t, undefined, { limits })
    const fields = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, '']))
    const ended = (stream: ClientHttp2Stream) =>
      new Promise(resolve => stream.once('close', () => resolve(stream.rstCode)))
    const large = open(session, fields(90), '')
    const small = open(session, {}, '')
    await waitUntil('both', () => upstream.connections.filter(({ unread }) => unread !== '').length === 2)
    t.equal(await ended(open(session, {}, '')), constants.NGHTTP2_REFUSED_STREAM)
    small.close(constants.NGHTTP2_CANCEL)
    large.close(constants.NGHTTP2_CANCEL)
    await waitUntil('room for one that counts for all', async () => {
      const stream = open(session, fields(150), '')
      const admitted = waitUntil(
        'it',
        () => upstream.connections.filter(({ unread }) => unread.includes('x-149')).length === 1,
      )
      return (await Promise.race([ended(stream), admitted.then(() => 0)])) === 0
    })
    t.equal(await ended(open(session, fields(200), '')), constants.NGHTTP2_ENHANCE_YOUR_CALM)
  })

  t.test('an upload', async t => {
    t.test('arrives whole, with and without a content-length', async t => {
      const { session, upstream } = await scene(t, async peer => {
        for (;;) {
          const { body } = await peer.message()
          peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${String(body.length).length}\r\n\r\n${body.length}`)
        }
      })
      const body = 'x'.repeat(300_000)
      t.equal((await ask(session, { ':method': 'POST' }, body)).body, '300000')
      t.equal((await ask(session, { ':method': 'PUT', 'content-length': 300_000 }, body)).body, '300000')
      t.equal(upstream.connections.length, 1)
    })

    t.test('is read for rules that need its body', async t => {
      const rule = `version: 1
kind: in-flight
rules:
  - { id: recovery, match: [POST /recovery], key: [project, email-or-flow], max: 1, missing: skip }
`
      const { session, upstream } = await scene(t, undefined, { policies: { 'a.yaml': rule } })
      const recover = (email: string): Promise<Answer> =>
        ask(
          session,
          { ':method': 'POST', ':path': '/recovery', 'content-type': 'application/json' },
          JSON.stringify({ email }),
        )
      const first = recover('a@b.test')
      const peer = await upstream.connection(0)
      const { body } = await peer.message()
      t.equal((await recover('A@b.test')).status, 429)
      peer.send(OK)
      t.equal((await first).status, 200)
      t.same(JSON.parse(body), { email: 'a@b.test' })
    })

    t.test('gets the 100 it expects', async t => {
      const { session, upstream } = await scene(t, answering(OK))
      const stream = open(session, { ':method': 'POST', expect: '100-continue' })
      await once(stream, 'continue')
      stream.end('body')
      t.equal((await answerOf(stream)).status, 200)
      t.equal(upstream.connections.length, 1)
    })

    for (const [method, reason] of [
      ['POST', CANCEL],
      ['POST', NO_ERROR],
      ['HEAD', NO_ERROR],
    ] as const) {
      t.test(`never looks complete when its client resets a ${method} with code ${reason}`, async t => {
        const { port, upstream } = await scene(t)
        const client = await FrameClient.open(t, port)
        client.send(
          frame(HEADERS, END_HEADERS, 1, requestFields('/', [], method)),
          frame(DATA, 0, 1, Buffer.from('half')),
        )
        const peer = await upstream.connection(0)
        await waitUntil('the half', () => peer.unread.includes('half'))
        client.send(frame(RST_STREAM, 0, 1, code(reason)))
        await waitUntil('the end upstream', () => peer.closed || peer.ended)
        t.match(peer.unread, /half(?:\r\n)?$/, 'no last chunk is sent')
      })
    }

    t.test('gets 408 when it stalls', async t => {
      const { session } = await scene(t, undefined, {
        timeouts: '{ connect: 1s, head: 2s, idle: 100ms }',
      })
      const stream = open(session, { ':method': 'POST' })
      stream.write('half')
      t.equal((await answerOf(stream)).status, 408)
    })

    t.test('gets an early response, and is then reset with NO_ERROR', async t => {
      const { session } = await scene(t, async peer => {
        await peer.head()
        peer.send(OK)
      })
      const stream = open(session, { ':method': 'POST' })
      stream.write('half')
      const answer = await answerOf(stream)
      t.same([answer.status, answer.body], [200, 'ok'])
      await waitUntil('the reset', () => stream.closed)
      t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
    })
  })

  t.test('a client that reads slowly but steadily gets everything', async t => {
    const size = 160_000
    const large = `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`
    const { port } = await scene(t, answering(large), {
      timeouts: '{ connect: 1s, head: 2s, idle: 2s }',
    })
    const client = await FrameClient.open(t, port)
    const request = frame(HEADERS, END_HEADERS | END_STREAM, 1, requestFields('/'))
    client.send(request)
    const received = () => {
      const pieces = client.frames.filter(({ type, stream }) => type === DATA && stream === 1)
      return pieces.reduce((sum, { payload }) => sum + payload.length, 0)
    }
    const reset = () => client.frames.some(({ type, stream }) => type === RST_STREAM && stream === 1)
    while (received() < size && !reset()) {
      await sleep(600)
      for (const stream of [0, 1]) client.send(frame(WINDOW_UPDATE, 0, stream, code(16_384)))
    }
    t.equal(received(), size)
  })

  t.test('a client that resets a request cancels it upstream, and no other request', async t => {
    const { session, upstream } = await scene(t)
    const left = open(session, { ':path': '/left' }, '')
    const first = await upstream.connection(0)
    await first.message()
    const kept = open(session, { ':path': '/kept' }, '')
    const second = await upstream.connection(1)
    await second.message()
    left.close(constants.NGHTTP2_CANCEL)
    await waitUntil('the end upstream', () => first.closed || first.ended)
    second.send(OK)
    t.equal((await answerOf(kept)).body, 'ok')
  })

  t.test('a response cut upstream resets its stream, and never looks complete', async t => {
    const { session, upstream } = await scene(t)
    for (const [index, framing] of [
      'Content-Length: 10\r\n\r\nhalf',
      'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
    ].entries()) {
      const stream = open(session, {}, '')
      const peer = await upstream.connection(index)
      await peer.message()
      peer.send(`HTTP/1.1 200 OK\r\n${framing}`)
      await once(stream, 'response')
      peer.reset()
      await waitUntil('the reset', () => stream.closed)
      t.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR)
    }
    t.notOk(session.closed, 'the connection stays open')
  })

  t.test('a reader that stalls holds up its upstream and is cut, while others are served', async t => {
    const block = Buffer.alloc(64 * 1024)
    let sent = 0
    const { session } = await scene(
      t,
      async peer => {
        const { line } = await peer.message()
        if (line.includes('/small')) return answering(OK)(peer.send(OK))
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')
        while (!peer.closed) {
          sent += block.length
          if (!peer.socket.write(block)) await Promise.race([once(peer.socket, 'drain'), sleep(5_000)])
        }
      },
      { timeouts: '{ connect: 1s, head: 2s, idle: 400ms }' },
    )
    const stalled = open(session, { ':path': '/big' }, '')
    await once(stalled, 'response')
    stalled.pause()
    const beat = setInterval(() => ask(session, { ':path': '/small' }).catch(() => {}), 50)
    t.teardown(() => clearInterval(beat))
    await waitUntil('the cut', () => stalled.closed)
    t.equal(stalled.rstCode, constants.NGHTTP2_INTERNAL_ERROR)
    t.ok(sent < 30_000_000, `the upstream was held up after ${sent} bytes`)
    t.equal((await ask(session, { ':path': '/small' })).body, 'ok')
  })
})
