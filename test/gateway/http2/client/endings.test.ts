/** Connections and streams that an upstream ends: what becomes of the requests on them. */
import { once } from 'node:events'
import t from 'tap'
import { waitUntil } from '../../../helpers/wait.js'
import {
  code,
  DATA,
  END_STREAM,
  type Frame,
  frame,
  GOAWAY,
  HEADERS,
  REFUSED_STREAM,
  RST_STREAM,
} from '../../listen/frames.js'
import { type FramePeer, frameUpstream, head, whole } from './frame-upstream.js'
import { answerTo, ask, begin } from './http.js'
import { h2cGateway, h2cScene, http2Upstream } from './upstream.js'

const INTERNAL_ERROR = 2
const goaway = (last: number, error = 0): Buffer =>
  frame(GOAWAY, 0, 0, Buffer.concat([code(last), code(error)]))
const reset = (stream: number, error: number): Buffer => frame(RST_STREAM, 0, stream, code(error))
const endsStream = ({ type, flags }: Frame): boolean => type <= HEADERS && (flags & END_STREAM) !== 0
const heads = (peer: FramePeer | undefined): number => peer?.ofType(HEADERS).length ?? 0

t.test('after GOAWAY what was begun is finished, and the rest goes to a new connection', async t => {
  const upstream = await frameUpstream(t)
  const gateway = await h2cGateway(t, upstream.url)
  const all = ['/a', '/b', '/c'].map(path => ask(gateway.url + path))
  const peer = await upstream.peer()
  await waitUntil('three requests', () => heads(peer) === 3)
  peer.send(goaway(1))
  const second = await upstream.peer(1)
  await waitUntil('the other two', () => heads(second) === 2)
  const later = ask(`${gateway.url}/d`)
  await waitUntil('a later one', () => heads(second) === 3)
  peer.send(whole(1, 201))
  second.send(whole(1, 202), whole(3, 202), whole(5, 203))
  t.same((await Promise.all(all)).map(({ status }) => status).sort(), [201, 202, 202])
  t.equal((await later).status, 203)
  await waitUntil('the end of the first connection', () => peer.closed)
})

t.test('a stream that is refused', async t => {
  const cases: { does: string; asked: Parameters<typeof ask>[1]; sends: number }[] = [
    { does: 'is sent once more for a GET', asked: {}, sends: 2 },
    { does: 'is sent once more for a POST without a body', asked: { method: 'POST' }, sends: 2 },
    {
      does: 'is sent once more for a POST whose body has ended and was empty',
      asked: { method: 'POST', headers: { 'transfer-encoding': 'chunked' } },
      sends: 2,
    },
    {
      does: 'is sent once more with a short body',
      asked: { method: 'POST', headers: { 'content-length': '3' }, body: 'abc' },
      sends: 2,
    },
    {
      does: 'is not sent again once more of its body was sent than is kept',
      asked: { method: 'POST', body: 'x'.repeat(20_000) },
      sends: 1,
    },
  ]
  for (const { does, asked, sends } of cases) {
    await t.test(does, async t => {
      const upstream = await frameUpstream(t)
      const gateway = await h2cGateway(t, upstream.url)
      const answer = ask(gateway.url, asked)
      const peer = await upstream.peer()
      for (let i = 0; i < sends; i++) {
        await peer.request(2 * i + 1)
        peer.send(reset(2 * i + 1, REFUSED_STREAM))
      }
      t.equal((await answer).status, 502)
      t.equal(heads(peer), sends)
      t.equal(upstream.peers.length, 1, 'all on the connection, which goes on')
    })
  }

  await t.test('is answered when the second attempt is', async t => {
    const upstream = await frameUpstream(t)
    const gateway = await h2cGateway(t, upstream.url)
    const answer = ask(gateway.url)
    const peer = await upstream.peer()
    await peer.request(1)
    peer.send(reset(1, REFUSED_STREAM))
    await peer.request(3)
    peer.send(whole(3, 204))
    t.equal((await answer).status, 204)
  })
})

t.test('a POST that GOAWAY leaves out goes to a new connection, with the end of its empty body', async t => {
  const upstream = await frameUpstream(t)
  const gateway = await h2cGateway(t, upstream.url)
  const answer = ask(gateway.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
  const peer = await upstream.peer()
  await waitUntil('the whole request', () => peer.frames.some(endsStream))
  peer.send(goaway(0))
  const second = await upstream.peer(1)
  await waitUntil('the whole request again', () => second.frames.some(endsStream))
  second.send(whole(1, 201))
  t.equal((await answer).status, 201)
})

t.test(
  'a short body that GOAWAY leaves out is sent again to a new connection, a long one is not',
  async t => {
    const upstream = await frameUpstream(t)
    const gateway = await h2cGateway(t, upstream.url)
    const short = begin(gateway.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
    const answered = answerTo(short)
    short.write('one,')
    const peer = await upstream.peer()
    const bodyOf = ({ frames }: FramePeer) =>
      Buffer.concat(frames.filter(({ type }) => type === DATA).map(({ payload }) => payload)).toString()
    await waitUntil('the first half', () => bodyOf(peer) === 'one,')
    peer.send(goaway(0))
    const second = await upstream.peer(1)
    await waitUntil('the first half again', () => bodyOf(second) === 'one,')
    short.end('two')
    await waitUntil('all of it', () => second.frames.some(endsStream))
    t.equal(bodyOf(second), 'one,two')
    second.send(whole(1, 201))
    t.equal((await answered).status, 201)

    const long = ask(gateway.url, { method: 'POST', body: 'x'.repeat(20_000) })
    await waitUntil('a long body', () => bodyOf(second).length > 20_000)
    second.send(goaway(1))
    t.equal((await long).status, 502)
  },
)

t.test('a stream that is reset for another reason is not sent again, and the log says why', async t => {
  const upstream = await frameUpstream(t)
  const gateway = await h2cGateway(t, upstream.url)
  const answer = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.request()
  peer.send(reset(1, INTERNAL_ERROR))
  t.equal((await answer).status, 502)
  t.equal(heads(peer), 1)
  const other = ask(gateway.url)
  await peer.request(3)
  peer.send(whole(3))
  t.equal((await other).status, 200, 'the connection goes on')
  t.ok(gateway.lines.some(line => JSON.stringify(line).includes('INTERNAL_ERROR')))
})

t.test('a reset without an error behind a whole response changes nothing', async t => {
  const upstream = await frameUpstream(t)
  const gateway = await h2cGateway(t, upstream.url)
  const req = begin(gateway.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
  req.on('error', () => {})
  req.write('a')
  const peer = await upstream.peer()
  await peer.request()
  const body = frame(DATA, END_STREAM, 1, Buffer.from('early'))
  peer.send(head(1), body, reset(1, 0))
  t.equal((await answerTo(req)).body.toString(), 'early')
})

t.test('a response that breaks off in the midst is cut for its client', async t => {
  for (const end of [
    (peer: FramePeer) => peer.send(reset(1, INTERNAL_ERROR)),
    (peer: FramePeer) => peer.socket.destroy(),
  ]) {
    const upstream = await frameUpstream(t)
    const gateway = await h2cGateway(t, upstream.url)
    const answer = ask(gateway.url)
    const peer = await upstream.peer()
    await peer.request()
    peer.send(head(1), frame(DATA, 0, 1, Buffer.from('half')))
    await peer.frame(HEADERS)
    setTimeout(() => end(peer), 50)
    await t.rejects(answer)
  }
})

t.test(
  'an upstream that restarts is asked again, and a GET on its old connection is sent once more',
  async t => {
    const answer = (text: string) => (stream: { respond(): void; end(text: string): void }) => {
      stream.respond()
      stream.end(text)
    }
    const first = await http2Upstream(t, answer('first'))
    const gateway = await h2cGateway(t, first.url)
    t.equal((await ask(gateway.url)).body.toString(), 'first')
    await first.stop()
    await http2Upstream(t, answer('second'), { port: first.port })
    t.equal((await ask(gateway.url)).body.toString(), 'second')
  },
)

t.test('GETs on a connection that is lost share a new one', async t => {
  const upstream = await frameUpstream(t)
  const gateway = await h2cGateway(t, upstream.url)
  const first = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.request()
  peer.send(whole(1))
  await first
  const all = Array.from({ length: 20 }, () => ask(gateway.url))
  await waitUntil('the requests', () => heads(peer) === 21)
  peer.socket.destroy()
  const second = await upstream.peer(1)
  await waitUntil('all of them again', () => heads(second) === 20)
  t.equal(upstream.peers.length, 2)
  for (let i = 0; i < 20; i++) second.send(whole(2 * i + 1))
  for (const { status } of await Promise.all(all)) t.equal(status, 200)
})

t.test(
  'a silent upstream gets 504 for its request, a reset, and no further requests on that connection',
  async t => {
    const upstream = await frameUpstream(t)
    const gateway = await h2cGateway(t, upstream.url, {
      timeouts: '{ connect: 1s, head: 300ms, idle: 300ms }',
    })
    t.equal((await ask(gateway.url)).status, 504)
    const [peer] = upstream.peers
    t.match(await peer?.frame(RST_STREAM), { stream: 1 })
    const next = ask(gateway.url)
    const second = await upstream.peer(1)
    await second.request()
    second.send(whole(1))
    t.equal((await next).status, 200)
  },
)

t.test('a slow stream gets 504 on a connection that is alive, which goes on', async t => {
  const { gateway, upstream } = await h2cScene(
    t,
    (stream, headers) => {
      if (headers[':path'] === '/slow') return
      stream.respond()
      stream.end('ok')
    },
    { timeouts: '{ connect: 1s, head: 1s, idle: 1s }' },
  )
  const slow = ask(`${gateway.url}/slow`)
  let over = false
  slow.then(() => {
    over = true
  })
  while (!over) t.equal((await ask(gateway.url)).status, 200)
  t.equal((await slow).status, 504)
  t.equal(upstream.sessions.length, 1)
  const [stream] = upstream.streams
  await waitUntil('the reset', () => stream?.closed)
})

t.test('a body that pauses for too long is cut', async t => {
  const upstream = await frameUpstream(t)
  const gateway = await h2cGateway(t, upstream.url, { timeouts: '{ connect: 1s, head: 2s, idle: 200ms }' })
  const req = begin(gateway.url)
  req.end()
  const peer = await upstream.peer()
  await peer.request()
  peer.send(head(1), frame(DATA, 0, 1, Buffer.from('half')))
  const [res] = await once(req, 'response')
  await t.rejects(once(res.resume(), 'end'))
})
