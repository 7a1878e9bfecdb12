/** Addresses that refuse requests, reset them or talk nonsense: they are left out, and the others are asked. */
import type { ServerHttp2Stream } from 'node:http2'
import t, { type Test } from 'tap'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import { startGateway } from '../../forward/gateway.js'
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
  SETTINGS,
} from '../../listen/frames.js'
import { type FramePeer, frameUpstream, head, whole } from './frame-upstream.js'
import { answerTo, ask, begin } from './http.js'
import { http2Upstream } from './upstream.js'

type Answering = (peer: FramePeer, stream: number) => unknown

const goaway = (last: number): Buffer => frame(GOAWAY, 0, 0, Buffer.concat([code(last), code(0)]))
const reset = (stream: number, error: number): Buffer => frame(RST_STREAM, 0, stream, code(error))

/** An upstream that reacts to the head of each request. */
function answering(t: Test, answer: Answering) {
  return frameUpstream(t, peer => {
    let next = 1
    peer.socket.on('data', () => {
      for (; peer.ofType(HEADERS, next).length > 0; next += 2) answer(peer, next)
    })
  })
}

async function scene(t: Test, bad: Answering) {
  const first = await answering(t, bad)
  const isEnd = ({ type, flags }: Frame): boolean => type <= HEADERS && (flags & END_STREAM) !== 0
  const second = await answering(t, async (peer, stream) => {
    const isOver = (one: Frame): boolean => one.stream === stream && (isEnd(one) || one.type === RST_STREAM)
    await waitUntil('the end of the request', () => peer.closed || peer.frames.some(isOver))
    peer.send(whole(stream))
  })
  const gateway = await startGateway(t, { url: first.url, others: [second.url], protocol: 'h2c' })
  return { gateway, bad: first, good: second, url: `http://127.0.0.1:${gateway.port}` }
}

const refusing: Record<string, Answering> = {
  'refuses its requests': (peer, stream) => peer.send(reset(stream, REFUSED_STREAM)),
  'goes away before it answers': peer => peer.send(goaway(0)),
}
const failing: Record<string, Answering> = {
  'resets its requests': (peer, stream) => peer.send(reset(stream, 2)),
  'sends malformed heads': (peer, stream) => peer.send(head(stream, 'abc')),
  'breaks the rules of HTTP/2': peer => peer.send(frame(SETTINGS, 0, 1)),
}

for (const [what, answer] of Object.entries({ ...refusing, ...failing })) {
  t.test(`an address that ${what} three times in a row is ejected`, async t => {
    const { gateway, bad, url } = await scene(t, answer)
    const seen: number[] = []
    for (let i = 0; i < 10; i++) seen.push((await ask(url)).status)
    t.same(gateway.changes, [`${bad.port} ejected`])
    if (what in refusing) t.same(seen, Array(10).fill(200), 'the other one is asked instead')
    else t.equal(seen.filter(status => status === 502).length, 3)
  })
}

const aboutTheRequest = {
  PROTOCOL_ERROR: 1,
  FRAME_SIZE_ERROR: 6,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
  HTTP_1_1_REQUIRED: 13,
}

for (const [name, error] of Object.entries(aboutTheRequest)) {
  t.test(`an address that resets requests with ${name} is not ejected`, async t => {
    const { gateway, url } = await scene(t, (peer, stream) => peer.send(reset(stream, error)))
    const seen: number[] = []
    for (let i = 0; i < 10; i++) seen.push((await ask(url)).status)
    t.same(gateway.changes, [])
    t.equal(seen.filter(status => status === 502).length, 5, 'it is asked in turn with the other')
  })
}

t.test('a client with too many header fields for Node ejects no address', async t => {
  const answer = (stream: ServerHttp2Stream): void => {
    stream.respond()
    stream.end()
  }
  const [first, second] = [await http2Upstream(t, answer), await http2Upstream(t, answer)]
  const gateway = await startGateway(t, { url: first.url, others: [second.url], protocol: 'h2c' })
  const url = `http://127.0.0.1:${gateway.port}`
  const headers = Object.fromEntries(Array.from({ length: 145 }, (_, i) => [`x-${i}`, 'a']))
  for (let i = 0; i < 8; i++) t.equal((await ask(url, { headers })).status, 502)
  t.same(gateway.changes, [])
  t.equal((await ask(url)).status, 200)
})

t.test('one event that ends many requests counts once', async t => {
  const [first, second] = [await answering(t, () => {}), await answering(t, () => {})]
  const gateway = await startGateway(t, { url: first.url, others: [second.url], protocol: 'h2c' })
  const all = Array.from({ length: 10 }, () => ask(`http://127.0.0.1:${gateway.port}`, { method: 'POST' }))
  for (const upstream of [first, second]) {
    const peer = await upstream.peer()
    await waitUntil('its half of the requests', () => peer.ofType(HEADERS).length === 5)
    peer.socket.destroy()
  }
  for (const { status } of await Promise.all(all)) t.equal(status, 502)
  t.same(gateway.changes, [])
})

t.test('uploads that their clients do not finish are no failures of an address', async t => {
  const { gateway, bad, url } = await scene(t, (peer, stream) =>
    setTimeout(() => peer.send(reset(stream, 8)), 50),
  )
  for (let i = 0; i < 12; i++) {
    const req = begin(url, { method: 'POST', headers: { 'content-length': '10' } }).on('error', () => {})
    req.write('abc')
    // Half of them leave before the reset comes.
    const answer = answerTo(req).catch(() => {})
    await (i % 4 < 2 ? Promise.race([answer, sleep(150)]) : sleep(20))
    req.destroy()
  }
  await sleep(100)
  t.ok(bad.peers.length > 0)
  t.same(gateway.changes, [])
})

t.test('a refused upload of which nothing was taken', async t => {
  await t.test('is sent again, with all of its body', async t => {
    const { bad, good, url } = await scene(t, refusing['refuses its requests'] as Answering)
    await ask(url)
    for (let i = 0; i < 2; i++) {
      const req = begin(url, { method: 'POST', headers: { 'content-length': '3', expect: '100-continue' } })
      const answer = answerTo(req)
      req.flushHeaders()
      await sleep(100)
      req.end('abc')
      t.equal((await answer).status, 200)
    }
    t.ok((bad.peers[0]?.ofType(HEADERS).length ?? 0) >= 1, 'one was refused')
    const [peer] = good.peers
    const bodies = await waitUntil('the bodies', () => {
      const sent = peer?.ofType(DATA).filter(({ payload }) => payload.length > 0) ?? []
      return sent.length === 2 ? sent : undefined
    })
    for (const { payload } of bodies) t.equal(payload.toString(), 'abc')
  })
})
