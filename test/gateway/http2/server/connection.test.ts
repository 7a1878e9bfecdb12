/** A client's connection: its errors, its times, and how it ends. */
import t from 'tap'
import { holdClocks } from '../../../helpers/clocks.js'
import { waitUntil } from '../../../helpers/wait.js'
import {
  ACK,
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  frame,
  GOAWAY,
  HEADERS,
  NO_ERROR,
  PING,
  PREFACE,
  PRIORITY,
  PROTOCOL_ERROR,
  RST_STREAM,
  requestFields,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { FakeClient } from './fake-client.js'

const FLOW_CONTROL_ERROR = 3
const STREAM_CLOSED = 5
const FRAME_SIZE_ERROR = 6
const COMPRESSION_ERROR = 9
const WHOLE = END_HEADERS | END_STREAM

const get = (stream: number): Buffer => frame(HEADERS, WHOLE, stream, requestFields('/'))
const post = (stream: number): Buffer => frame(HEADERS, END_HEADERS, stream, requestFields('/', [], 'POST'))
const setting = (id: number, value: number): Buffer =>
  frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, id]), code(value)]))
/** A frame of 64 KiB, a piece at a time. */
const content = (stream: number, bytes: number): Buffer =>
  Buffer.concat(
    Array.from({ length: Math.ceil(bytes / 16_384) }, (_, i) =>
      frame(DATA, 0, stream, Buffer.alloc(Math.min(16_384, bytes - i * 16_384))),
    ),
  )

for (const [what, bytes, expected] of [
  ['a frame larger than allowed', frame(77, 0, 0, Buffer.alloc(16_385)), FRAME_SIZE_ERROR],
  ['PUSH_PROMISE', frame(5, END_HEADERS, 1, code(2)), PROTOCOL_ERROR],
  ['a stream of an even number', get(2), PROTOCOL_ERROR],
  ['a stream behind a later one', Buffer.concat([get(5), get(3)]), STREAM_CLOSED],
  ['DATA for a stream that was never opened', frame(DATA, 0, 1), PROTOCOL_ERROR],
  ['RST_STREAM for a stream that was never opened', frame(RST_STREAM, 0, 1, code(0)), PROTOCOL_ERROR],
  ['DATA for no stream', frame(DATA, 0, 0), PROTOCOL_ERROR],
  ['PING on a stream', frame(PING, 0, 1, Buffer.alloc(8)), PROTOCOL_ERROR],
  ['PING of seven bytes', frame(PING, 0, 0, Buffer.alloc(7)), FRAME_SIZE_ERROR],
  ['SETTINGS cut short', frame(SETTINGS, 0, 0, Buffer.alloc(5)), FRAME_SIZE_ERROR],
  ['a window of more than 31 bits', setting(4, 0x80000000), FLOW_CONTROL_ERROR],
  ['a frame size below the smallest', setting(5, 16_383), PROTOCOL_ERROR],
  ['an increment of nothing', frame(WINDOW_UPDATE, 0, 0, code(0)), PROTOCOL_ERROR],
  ['an increment beyond 31 bits', frame(WINDOW_UPDATE, 0, 0, code(0x7fffffff)), FLOW_CONTROL_ERROR],
  ['CONTINUATION without HEADERS', frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR],
  [
    'a frame between those of a head',
    Buffer.concat([frame(HEADERS, 0, 1, requestFields('/')), frame(PING, 0, 0, Buffer.alloc(8))]),
    PROTOCOL_ERROR,
  ],
  ['fields that cannot be decoded', frame(HEADERS, WHOLE, 1, Buffer.from([0xff, 0xff])), COMPRESSION_ERROR],
  ['more padding than bytes', frame(HEADERS, WHOLE | 0x8, 1, Buffer.from([9, 0x82])), PROTOCOL_ERROR],
  [
    'more content than the connection allows',
    Buffer.concat(Array.from({ length: 17 }, (_, i) => [post(2 * i + 1), content(2 * i + 1, 65_535)]).flat()),
    FLOW_CONTROL_ERROR,
  ],
] as const) {
  t.test(`${what} ends the connection`, async t => {
    const client = await FakeClient.open(t)
    await client.send(bytes)
    t.equal(client.ofType(GOAWAY)[0]?.payload.readUInt32BE(4), expected)
    const { length } = client.frames
    await client.send(get(101))
    t.equal(client.frames.length, length, 'and nothing is read any more')
    t.same(client.failures, [])
  })
}

t.test('a client that does not speak HTTP/2 is told so', async t => {
  const client = new FakeClient(t)
  await client.send(Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
  t.equal(client.ofType(GOAWAY)[0]?.payload.readUInt32BE(4), PROTOCOL_ERROR)
})

for (const [what, bytes, expected] of [
  ['more content than its window', Buffer.concat([post(1), content(1, 65_536)]), FLOW_CONTROL_ERROR],
  ['content behind its end', Buffer.concat([get(1), frame(DATA, 0, 1)]), STREAM_CLOSED],
  ['an increment of nothing', Buffer.concat([get(1), frame(WINDOW_UPDATE, 0, 1, code(0))]), PROTOCOL_ERROR],
  ['a priority of the wrong size', Buffer.concat([get(1), frame(PRIORITY, 0, 1, code(0))]), FRAME_SIZE_ERROR],
  ['trailers that are no end', Buffer.concat([post(1), frame(HEADERS, END_HEADERS, 1)]), PROTOCOL_ERROR],
  [
    'too many fields',
    frame(HEADERS, WHOLE, 1, requestFields('/', Array(200).fill(['a', '']))),
    ENHANCE_YOUR_CALM,
  ],
] as const) {
  t.test(`a request with ${what} is reset, and the next one is served`, async t => {
    const client = await FakeClient.open(t)
    await client.send(bytes)
    t.equal(client.ofType(RST_STREAM, 1)[0]?.payload.readUInt32BE(), expected)
    await client.send(get(3))
    t.equal(client.requests.at(-1)?.req.method, 'GET')
    t.same(client.ofType(GOAWAY), [])
  })
}

t.test('a request that is reset in the read that brings it never begins', async t => {
  const client = await FakeClient.open(t)
  await client.send(get(1), frame(RST_STREAM, 0, 1, code(8)), get(3))
  t.equal(client.requests.length, 1)
})

t.test('a connection ends when', async t => {
  for (const [what, bytes, wait, expected] of [
    ['no request comes', Buffer.alloc(0), 10_100, NO_ERROR],
    ['a frame does not become whole', get(1).subarray(0, 20), 10_100, PROTOCOL_ERROR],
    ['no further request comes', get(1), 65_100, NO_ERROR],
  ] as const) {
    t.test(what, async t => {
      const clock = holdClocks(t, Date.now())
      const client = await FakeClient.open(t)
      await client.send(bytes)
      for (const { res } of client.requests) {
        res.writeHead(204, '', [])
        res.end()
      }
      clock.ms += wait - 300
      await new Promise(resolve => setTimeout(resolve, 120))
      t.same(client.ofType(GOAWAY), [], 'not before')
      clock.ms += 300
      const goaway = await waitUntil('its end', () => client.ofType(GOAWAY)[0])
      t.equal(goaway.payload.readUInt32BE(4), expected)
    })
  }

  t.test('but not when each read ends within a frame that the next one completes', async t => {
    const clock = holdClocks(t, Date.now())
    const client = await FakeClient.open(t)
    const ping = frame(PING, 0, 0, Buffer.alloc(8))
    await client.send(post(1), ping.subarray(0, 5))
    for (let i = 0; i < 12; i++) {
      clock.ms += 1_000
      await client.send(ping.subarray(5), ping.subarray(0, 5))
    }
    await new Promise(resolve => setTimeout(resolve, 120))
    t.same(client.ofType(GOAWAY), [])
    clock.ms += 10_100
    await waitUntil('its end', () => client.ofType(GOAWAY)[0])
  })

  t.test('a further head does not become whole', async t => {
    const clock = holdClocks(t, Date.now())
    const client = await FakeClient.open(t)
    await client.send(get(1), frame(HEADERS, 0, 3, requestFields('/')))
    clock.ms += 10_100
    const goaway = await waitUntil('its end', () => client.ofType(GOAWAY)[0])
    t.equal(goaway.payload.readUInt32BE(4), PROTOCOL_ERROR)
  })

  t.test('a client with a request falls silent, and does not reply to a ping', async t => {
    const clock = holdClocks(t, Date.now())
    const client = await FakeClient.open(t)
    const pass = async (ms: number) => {
      clock.ms += ms
      await new Promise(resolve => setTimeout(resolve, 120))
    }
    await client.send(get(1))
    await pass(1_100)
    await pass(10_100)
    t.equal(client.ofType(PING).length, 1, 'is pinged')
    await client.send(frame(PING, ACK, 0, Buffer.alloc(8)))
    await pass(1_100)
    await pass(10_100)
    t.equal(client.ofType(PING).length, 2, 'is pinged again')
    await pass(19_000)
    t.notOk(client.closed, 'has time to reply')
    await pass(1_100)
    t.ok(client.closed)
  })
})

t.test('a drain tells the client, serves what is on its way, and ends with the last response', async t => {
  const client = await FakeClient.open(t)
  await client.send(get(1))
  client.connections.drain()
  await client.send(get(3))
  t.equal(client.requests.length, 2, 'a request that was on its way')
  t.same(
    client.ofType(GOAWAY).map(({ payload }) => payload.readUInt32BE()),
    [0x7fffffff],
  )
  await waitUntil('the second GOAWAY', () => client.ofType(GOAWAY).length === 2)
  t.equal(client.ofType(GOAWAY)[1]?.payload.readUInt32BE(), 3, 'names the last request')
  await client.send(get(5))
  t.equal(client.requests.length, 2, 'a later request is not served')
  t.notOk(client.closed)
  for (const { res } of client.requests) {
    res.writeHead(200, '', [])
    res.end('ok')
  }
  await waitUntil('the responses', () => client.ofType(DATA).length === 2)
  await waitUntil('the end', () => client.closed, 5_000)
})

t.test('a client that leaves together with its requests is told that they are served', async t => {
  const client = await FakeClient.open(t)
  await client.send(Buffer.concat([get(1), post(3), frame(GOAWAY, 0, 0, Buffer.alloc(8))]))
  t.equal(client.ofType(GOAWAY)[0]?.payload.readUInt32BE(), 3)
  await client.send(frame(DATA, END_STREAM, 3, Buffer.from('late')), get(5))
  t.equal(client.requests.length, 2)
  for (const { res } of client.requests) {
    res.writeHead(200, '', [])
    res.end('ok')
  }
  await waitUntil('the responses', () => client.ofType(DATA).length === 2)
})

t.test('a connection that begins during a drain still has its first request served', async t => {
  const client = new FakeClient(t)
  client.connections.drain()
  await client.send(Buffer.from(PREFACE), frame(SETTINGS, 0, 0), get(1))
  t.equal(client.requests.length, 1)
})
