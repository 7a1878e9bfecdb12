/** Upstreams that break rules, or send too much of what costs them nothing. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { TestGateway } from '../../../helpers/gateway.js'
import { waitUntil } from '../../../helpers/wait.js'
import {
  ACK,
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL_ERROR,
  fields,
  frame,
  GOAWAY,
  HEADERS,
  PADDED,
  PING,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  RST_STREAM,
  SETTINGS,
  settings,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { type FramePeer, type FrameUpstream, frameUpstream, head, whole } from './frame-upstream.js'
import { ask, begin } from './http.js'
import { h2cGateway } from './upstream.js'

type Scene = { readonly upstream: FrameUpstream; readonly gateway: TestGateway }

async function scene(t: Test, script?: (peer: FramePeer) => unknown, timeouts?: string): Promise<Scene> {
  const upstream = await frameUpstream(t, script)
  return { upstream, gateway: await h2cGateway(t, upstream.url, timeouts === undefined ? {} : { timeouts }) }
}

const data = (stream: number, text: string, flags = 0): Buffer =>
  frame(DATA, flags, stream, Buffer.from(text))
const block = (stream: number, list: readonly (readonly [string, string])[], flags = END_STREAM): Buffer =>
  frame(HEADERS, END_HEADERS | flags, stream, fields(list))
const status: readonly [string, string] = [':status', '200']

t.test(
  'the connection begins with the preface, no push is allowed, and SETTINGS are acknowledged',
  async t => {
    const { upstream, gateway } = await scene(t)
    const answer = ask(gateway.url)
    const peer = await upstream.peer()
    await peer.request()
    t.match(peer.preface, /^PRI \* HTTP\/2\.0/)
    const [first, acknowledgement] = peer.ofType(SETTINGS)
    t.equal(first?.payload.toString('hex'), '000200000000')
    peer.send(frame(PING, 0, 0, Buffer.from('12345678')))
    const reply = await peer.frame(PING)
    t.match(reply, { flags: ACK, payload: Buffer.from('12345678') })
    t.equal((acknowledgement ?? peer.ofType(SETTINGS)[1])?.flags, ACK)
    peer.send(whole(1))
    t.equal((await answer).status, 200)
  },
)

t.test('a malformed response', async t => {
  const cases: Record<string, readonly Buffer[]> = {
    'without a status': [block(1, [['x-a', '1']])],
    'with a status that is no number': [whole(1, 'abc')],
    'with a status below 100': [whole(1, '042')],
    'with two statuses': [block(1, [status, status])],
    'with a status behind a field': [block(1, [['x-a', '1'], status])],
    'with a pseudo-header field of requests': [block(1, [status, [':path', '/']])],
    'with a name in capitals': [block(1, [status, ['X-A', '1']])],
    'with an empty name': [block(1, [status, ['', '1']])],
    'with an empty name in an interim response': [
      block(
        1,
        [
          [':status', '103'],
          ['', '1'],
        ],
        0,
      ),
    ],
    'with a line break in a value': [block(1, [status, ['x-a', 'a\r\nb']])],
    'with a field about the connection': [block(1, [status, ['connection', 'close']])],
    'with a transfer coding': [block(1, [status, ['transfer-encoding', 'chunked']])],
    'with two lengths': [block(1, [status, ['content-length', '1'], ['content-length', '1']])],
    'with a length and no content': [block(1, [status, ['content-length', '1']])],
    'that switches protocols': [head(1, 101)],
    'with an interim response that ends it': [block(1, [[':status', '103']])],
    'with too many interim responses': Array.from({ length: 65 }, () => head(1, 103)),
    'with too large a head': [
      frame(HEADERS, END_STREAM, 1, fields([status, ...many(8)])),
      frame(CONTINUATION, END_HEADERS, 1, fields(many(8))),
    ],
    'with content before its head': [data(1, 'a')],
    'with content of an odd kind before its head': [frame(DATA, PADDED, 1, Buffer.from([1, 97, 0]))],
  }
  for (const [what, frames] of Object.entries(cases)) {
    await t.test(`${what} gets 502, a reset, and the connection goes on`, async t => {
      const { upstream, gateway } = await scene(t)
      const answer = ask(gateway.url)
      const peer = await upstream.peer()
      await peer.request()
      peer.send(...frames)
      const { status, body } = await answer
      t.equal(status, 502)
      t.equal(JSON.parse(String(body)).code, 'upstream-invalid')
      await peer.frame(RST_STREAM, 1)
      const other = ask(gateway.url)
      await peer.request(3)
      peer.send(whole(3))
      t.equal((await other).status, 200)
      t.equal(upstream.peers.length, 1)
    })
  }
})

/** Fields of `count` KiB together. */
function many(count: number): [string, string][] {
  return Array.from({ length: count }, (_, i) => [`x-${i}`, 'a'.repeat(1020)])
}

t.test('a body that proves malformed is cut for its client', async t => {
  const announced = (...after: Buffer[]) => [block(1, [status, ['content-length', '3']], 0), ...after]
  const cases: Record<string, readonly Buffer[]> = {
    'longer than announced': announced(data(1, 'abcd')),
    'shorter than announced': announced(data(1, 'ab', END_STREAM)),
    'with trailers that do not end it': [head(1), data(1, 'ab'), block(1, [['x-a', '1']], 0)],
    'with a pseudo-header field in its trailers': [head(1), data(1, 'ab'), block(1, [status])],
    'with an empty name in its trailers': [head(1), data(1, 'ab'), block(1, [['', '1']])],
    'with a length in its trailers': [head(1), data(1, 'ab'), block(1, [['content-length', '2']])],
    'with too many trailers': [
      head(1),
      data(1, 'ab'),
      block(
        1,
        Array.from({ length: 65 }, (_, i) => [`x-${i}`, ''] as const),
      ),
    ],
  }
  for (const [what, frames] of Object.entries(cases)) {
    await t.test(what, async t => {
      const { upstream, gateway } = await scene(t)
      const answer = ask(gateway.url).then(
        ({ status }) => status,
        () => 'cut',
      )
      const peer = await upstream.peer()
      await peer.request()
      // In a read of its own, so that the client has the head.
      for (const one of frames) {
        peer.send(one)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      t.match(await answer, /cut|502/)
      await peer.frame(RST_STREAM, 1)
      t.notOk(peer.closed)
    })
  }
})

t.test('content behind a response that has none is refused', async t => {
  const { upstream, gateway } = await scene(t)
  for (const [i, [method, answered]] of (
    [
      ['HEAD', 200],
      ['GET', 204],
      ['GET', 304],
    ] as const
  ).entries()) {
    const answer = ask(gateway.url, { method }).then(
      () => {},
      () => {},
    )
    const peer = await upstream.peer()
    const stream = 2 * i + 1
    await peer.request(stream)
    peer.send(head(stream, answered), data(stream, 'smuggled', END_STREAM))
    await peer.frame(RST_STREAM, stream)
    await answer
  }
  t.equal(upstream.peers.length, 1)
})

t.test('the connection ends, and its requests get 502, for', async t => {
  const bomb = Buffer.concat([
    // One entry of 4 KB in the table, and then its index again and again.
    Buffer.from([0x40]),
    fields([['x-bomb', 'a'.repeat(3_900)]]).subarray(1),
    Buffer.alloc(16_000 - 3_950, 0xbe),
  ])
  const cases: Record<string, readonly Buffer[]> = {
    'a frame before SETTINGS': [],
    'a pushed response': [frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([code(2), fields([status])]))],
    'a response on a stream that was never opened': [whole(3)],
    'a response on a stream of its own': [whole(2)],
    'content on a stream that was never opened': [data(5, 'a')],
    'a reset of a stream that was never opened': [frame(RST_STREAM, 0, 7, code(8))],
    'a frame that is too large': [frame(DATA, 0, 1, Buffer.alloc(16_385))],
    'SETTINGS on a stream': [frame(SETTINGS, 0, 1)],
    'PING of the wrong size': [frame(PING, 0, 0, Buffer.alloc(7))],
    'a window of more than 31 bits': [frame(WINDOW_UPDATE, 0, 0, code(0x7fff_ffff))],
    'an increment of 0': [frame(WINDOW_UPDATE, 0, 0, code(0))],
    'an initial window that is too large': [settings([4, 0x8000_0000])],
    'permission to push, which only a client gives': [settings([2, 1])],
    'a header block that cannot be decoded': [
      frame(HEADERS, END_HEADERS, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
    ],
    'a header block that decodes to far more': [frame(HEADERS, END_HEADERS, 1, bomb)],
    'a frame within a header block': [
      frame(HEADERS, 0, 1, fields([status])),
      frame(PING, 0, 0, Buffer.alloc(8)),
    ],
    'endless CONTINUATION frames': [
      frame(HEADERS, 0, 1, fields([status])),
      ...Array.from({ length: 20 }, () => frame(CONTINUATION, 0, 1, fields([['x-a', 'b']]))),
    ],
    'a flood of SETTINGS': Array.from({ length: 300 }, () => frame(SETTINGS, 0, 0)),
    'a flood of PING': Array.from({ length: 60_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))),
    'a flood of empty content': [head(1), ...Array.from({ length: 60_000 }, () => frame(DATA, 0, 1))],
    'a flood of unknown frames': Array.from({ length: 60_000 }, () => frame(77, 0, 0)),
    'a response in HTTP/1.1': [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  }
  for (const [what, frames] of Object.entries(cases)) {
    await t.test(what, async t => {
      const isFirst = what === 'a frame before SETTINGS' || what === 'a response in HTTP/1.1'
      const first = isFirst ? [frames[0] ?? whole(1)] : undefined
      const upstream = await frameUpstream(t, () => {}, first)
      const gateway = await h2cGateway(t, upstream.url)
      const answer = ask(gateway.url).then(
        ({ status }) => status,
        () => 'cut',
      )
      const peer = await upstream.peer()
      if (!isFirst) {
        await peer.request()
        peer.send(...frames)
      }
      t.match(await answer, /502|cut/)
      await waitUntil('the end of the connection', () => peer.closed)
      if (!isFirst) t.equal(peer.ofType(GOAWAY).length, 1, 'with GOAWAY')
    })
  }
})

t.test('a response that was whole before an error of the connection arrives', async t => {
  const { upstream, gateway } = await scene(t)
  const answer = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.request()
  peer.send(head(1), data(1, 'whole', END_STREAM), frame(PING, 0, 0, Buffer.alloc(7)))
  t.equal((await answer).body.toString(), 'whole')
})

t.test('an upstream that sends more than its window is cut off', async t => {
  const { upstream, gateway } = await scene(t)
  const req = begin(gateway.url).on('error', () => {})
  const response = once(req, 'response')
  req.end()
  const peer = await upstream.peer()
  await peer.request()
  peer.send(head(1))
  const [res] = await response
  res.on('error', () => {})
  // The client reads nothing, so that what it has not read piles up as far as the window.
  const piece = frame(DATA, 0, 1, Buffer.alloc(16_384))
  for (let sent = 0; sent < 4_000 && peer.ofType(RST_STREAM).length === 0; sent += 8) {
    peer.send(...Array<Buffer>(8).fill(piece))
    await new Promise(resolve => setImmediate(resolve))
  }
  const reset = await peer.frame(RST_STREAM, 1)
  t.equal(reset.payload.readUInt32BE(0), FLOW_CONTROL_ERROR)
})

t.test('frames on streams that have ended are ignored', async t => {
  const { upstream, gateway } = await scene(t)
  const answer = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.request()
  peer.send(whole(1), whole(1), data(1, 'late'), frame(RST_STREAM, 0, 1, code(PROTOCOL_ERROR)))
  peer.send(frame(WINDOW_UPDATE, 0, 1, code(10)), frame(77, 0, 1))
  t.equal((await answer).status, 200)
  const other = ask(gateway.url)
  await peer.request(3)
  peer.send(whole(3))
  t.equal((await other).status, 200)
})

t.test('a head that arrives in parts for too long ends the connection', async t => {
  const { upstream, gateway } = await scene(t, undefined, '{ connect: 1s, head: 300ms, idle: 5s }')
  const answer = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.request()
  peer.send(frame(HEADERS, 0, 1, fields([status])))
  t.match((await answer).status, /50[24]/)
  await waitUntil('the end of the connection', () => peer.closed)
})

t.test('an upstream that reads nothing, but asks for replies, is cut off', async t => {
  const { upstream, gateway } = await scene(t, peer => peer.socket.pause())
  const answer = ask(gateway.url).then(
    ({ status }) => status,
    () => 'cut',
  )
  const peer = await upstream.peer()
  const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(PING, 0, 0, Buffer.alloc(8))))
  const timer = setInterval(() => peer.socket.write(pings), 5)
  t.teardown(() => clearInterval(timer))
  t.match(await answer, /50[24]|cut/)
})
