/** How much is sent and held: windows both ways, and clients that do not read. */
import t from 'tap'
import {
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  RST_STREAM,
  requestFields,
  SETTINGS,
  WINDOW_UPDATE,
} from '../listen/frames.js'
import { FakeClient } from './server/fake-client.js'

const WHOLE = END_HEADERS | END_STREAM
const get = (stream: number, method = 'GET'): Buffer =>
  frame(HEADERS, WHOLE, stream, requestFields('/', [['te', 'trailers']], method))
const post = (stream: number): Buffer => frame(HEADERS, END_HEADERS, stream, requestFields('/', [], 'POST'))
const initialWindow = (bytes: number): Buffer =>
  frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), code(bytes)]))
const open = (stream: number, bytes: number): Buffer => frame(WINDOW_UPDATE, 0, stream, code(bytes))

const bytesTo = (client: FakeClient, stream: number): number =>
  client.ofType(DATA, stream).reduce((sum, { payload }) => sum + payload.length, 0)

function answer(client: FakeClient, index: number, body: Buffer, trailers: string[] = []): boolean {
  const { res } = client.requests[index] as FakeClient['requests'][number]
  res.writeHead(200, '', [])
  const takesMore = res.write(body)
  res.end(undefined, trailers)
  return takesMore
}

t.test('a response is sent as far as its window is open, and ends with its last byte', async t => {
  const client = await FakeClient.open(t)
  await client.send(initialWindow(10), get(1))
  t.notOk(answer(client, 0, Buffer.alloc(25), ['x-late', '1']), 'the upstream must wait')
  await client.send()
  t.equal(bytesTo(client, 1), 10)
  await client.send(open(1, 10))
  t.equal(bytesTo(client, 1), 20)
  await client.send(initialWindow(100))
  t.equal(bytesTo(client, 1), 25)
  const [, trailers] = client.ofType(HEADERS, 1)
  t.equal(trailers?.flags, WHOLE)
})

t.test('a window that was made smaller than what was sent opens again', async t => {
  const client = await FakeClient.open(t)
  await client.send(initialWindow(20), get(1))
  answer(client, 0, Buffer.alloc(30))
  await client.send(initialWindow(5))
  await client.send(open(1, 15))
  t.equal(bytesTo(client, 1), 20, 'the window is at 0')
  await client.send(open(1, 10))
  t.equal(bytesTo(client, 1), 30)
})

t.test('streams share the window of the connection in turn', async t => {
  const client = await FakeClient.open(t)
  await client.send(initialWindow(1_000_000), get(1), get(3), get(5))
  for (const index of [0, 1, 2]) answer(client, index, Buffer.alloc(100_000))
  await client.send()
  t.equal(bytesTo(client, 1) + bytesTo(client, 3) + bytesTo(client, 5), 65_535)
  for (let i = 0; i < 6; i++) await client.send(open(0, 16_384))
  t.ok(bytesTo(client, 3) >= 32_768 && bytesTo(client, 5) >= 32_768, 'no stream waits for another to end')
  await client.send(open(0, 1_000_000))
  for (let i = 0; i < 5; i++) await client.send()
  for (const stream of [1, 3, 5]) t.equal(bytesTo(client, stream), 100_000)
})

t.test('all that a turn of the event loop produces leaves in one write', async t => {
  const client = await FakeClient.open(t)
  await client.send(get(1), get(3), get(5))
  const { length } = client.writes
  for (const index of [0, 1, 2]) answer(client, index, Buffer.from('ok'))
  await client.send()
  t.equal(client.writes.length, length + 1)
})

t.test('an upload is held up to its window, and goes on when it is read', async t => {
  const client = await FakeClient.open(t)
  await client.send(post(1))
  for (let i = 0; i < 60; i++) await client.send(frame(DATA, 0, 1, Buffer.alloc(1_000, i)))
  t.same(client.ofType(WINDOW_UPDATE, 1), [], 'no more is asked for')
  const pieces: Buffer[] = []
  const { body } = client.requests[0]?.req ?? {}
  body?.read({ onData: piece => pieces.push(piece), onEnd() {}, onAbort() {} })
  t.equal(pieces.length, 1, 'what was held is one piece')
  t.same(pieces[0], Buffer.concat(Array.from({ length: 60 }, (_, i) => Buffer.alloc(1_000, i))))
  await client.send()
  t.equal(client.ofType(WINDOW_UPDATE, 1)[0]?.payload.readUInt32BE(), 60_000)
})

t.test('many small frames of one read are one piece', async t => {
  const client = await FakeClient.open(t)
  await client.send(post(1))
  const pieces: Buffer[] = []
  client.requests[0]?.req.body?.read({ onData: piece => pieces.push(piece), onEnd() {}, onAbort() {} })
  await client.send(...Array.from({ length: 1_000 }, (_, i) => frame(DATA, 0, 1, Buffer.from([i & 0xff]))))
  t.equal(pieces.length, 1)
  t.equal(pieces[0]?.length, 1_000)
})

t.test('whoever was told to wait is told to go on, also after a flush with nothing to send', async t => {
  const client = await FakeClient.open(t)
  await client.send(initialWindow(1_000_000), open(0, 1_000_000), get(1), get(3))
  client.reads = false
  const [first, second] = client.requests
  first?.res.writeHead(200, '', [])
  second?.res.writeHead(200, '', [])
  second?.res.flush()
  await client.send()
  t.notOk(first?.res.write(Buffer.alloc(400_000)), 'the client does not read')
  second?.res.flush()
  const drains: string[] = []
  second?.res.watch({ onDrain: () => void drains.push('drain') })
  t.notOk(second?.res.write(Buffer.alloc(10)))
  await client.resume()
  t.equal(bytesTo(client, 3), 10)
  t.same(drains, ['drain'])
})

t.test('a client that reads nothing makes little pile up', async t => {
  for (const [what, method] of [
    ['with content', 'GET'],
    ['without content', 'HEAD'],
  ] as const) {
    const client = await FakeClient.open(t)
    client.reads = false
    for (let i = 0; i < 2_000; i++) {
      await client.send(get(2 * i + 1, method), open(0, 1_000))
      const { req, res } = client.requests[i] ?? {}
      if (req === undefined || res === undefined) break
      res.writeHead(200, '', ['x-large', `${i}${'x'.repeat(1_000)}`])
      res.end(method === 'HEAD' ? undefined : Buffer.alloc(1_000))
    }
    t.ok(
      client.requests.length < 300,
      `${what}: after ${client.requests.length} requests no more are accepted`,
    )
    await client.resume()
    await client.send()
    t.equal(
      client.ofType(RST_STREAM).every(({ payload }) => payload.readUInt32BE() === 7),
      true,
    )
    t.equal(client.ofType(HEADERS).length, client.requests.length, 'those that were accepted are answered')
  }
})
