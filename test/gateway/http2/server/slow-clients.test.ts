/** Clients that read or send slowly, never finish, or play with windows: what is held for them is bounded. */
import t from 'tap'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import {
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL_ERROR,
  type FrameClient,
  frame,
  GOAWAY,
  getFrame,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  postFrame,
  REFUSED_STREAM,
  requestFields,
  settings,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { onBothWires } from '../../listen/http2-scene.js'
import { endOf, play, target } from './hostile-scene.js'

const MIB = 1024 * 1024
const MOST_WINDOW = 0x7fff_ffff
const streams = Array.from({ length: 100 }, (_, i) => 2 * i + 1)
const noWindow = { first: settings([INITIAL_WINDOW_SIZE, 0]) }

/** Bytes of a response's body so far. */
function lengthOf(client: FrameClient, stream: number): number {
  const data = client.of(stream).filter(({ type }) => type === DATA)
  return data.reduce((sum, { payload }) => sum + payload.length, 0)
}

/** Memory outside of the collector's heap, where bodies are. */
const held = () => process.memoryUsage().external

onBothWires(t, (t, { wire, certificate }) => {
  t.test('a client', async t => {
    const place = await target(t, certificate, wire)

    for (const [what, options] of [
      ['whose windows are 0', noWindow],
      ['that reads nothing', { first: settings([INITIAL_WINDOW_SIZE, MOST_WINDOW]) }],
    ] as const) {
      t.test(`${what} has few bytes of its responses held, and gets all of them later`, async t => {
        const client = await place.hostile(t, options)
        if (options !== noWindow) {
          client.send(frame(WINDOW_UPDATE, 0, 0, code(MOST_WINDOW - 65_535)))
          client.socket.pause()
        }
        const before = held()
        client.send(...streams.map(stream => getFrame(stream, '/bytes/1000000')))
        let most = 0
        for (let i = 0; i < 50; i++) {
          await sleep(10)
          most = Math.max(most, held() - before)
        }
        await place.serve()
        t.ok(most < 32 * MIB, `${Math.round(most / MIB)} MiB`)
        t.equal(lengthOf(client, 1), 0)
        client.socket.resume()
        client.send(settings([INITIAL_WINDOW_SIZE, MOST_WINDOW]))
        if (options === noWindow) client.send(frame(WINDOW_UPDATE, 0, 0, code(MOST_WINDOW - 65_535)))
        await Promise.all(streams.map(stream => client.end(stream)))
        t.same(
          streams.map(stream => lengthOf(client, stream)),
          streams.map(() => 1_000_000),
        )
      })
    }

    t.test('whose windows become negative gets no byte until they are positive again', async t => {
      const client = await place.hostile(t, { first: settings([INITIAL_WINDOW_SIZE, 10_000]) })
      client.send(getFrame(1, '/bytes/50000'))
      await waitUntil('the window to be used', () => lengthOf(client, 1) === 10_000)
      client.send(settings([INITIAL_WINDOW_SIZE, 0]), frame(WINDOW_UPDATE, 0, 1, code(10_000)))
      await sleep(50)
      t.equal(lengthOf(client, 1), 10_000)
      client.send(frame(WINDOW_UPDATE, 0, 1, code(1)))
      await waitUntil('the byte', () => lengthOf(client, 1) === 10_001)
      client.send(settings([INITIAL_WINDOW_SIZE, 39_999]))
      await client.end(1)
      t.equal(lengthOf(client, 1), 50_000)
    })

    t.test('that adds one byte to its window at a time gets its whole response', async t => {
      const client = await place.hostile(t, noWindow)
      client.send(getFrame(1, '/bytes/500'))
      for (let i = 1; i <= 500; i++) {
        client.send(frame(WINDOW_UPDATE, 0, 1, code(1)))
        await waitUntil('the next byte', () => lengthOf(client, 1) >= i - 20)
      }
      await client.end(1)
      t.equal(lengthOf(client, 1), 500)
    })

    t.test('that uploads byte by byte has all of them arrive', async t => {
      const client = await place.hostile(t)
      const before = place.seen.length
      client.send(postFrame(1, '/upload'))
      const some = Buffer.concat(Array<Buffer>(1_000).fill(frame(DATA, 0, 1, Buffer.from('a'))))
      for (let i = 0; i < 20; i++) {
        client.send(some)
        await sleep(1)
      }
      client.send(frame(DATA, END_STREAM, 1))
      await client.end(1)
      t.same(client.statuses().get(1), [200])
      t.equal(place.seen[before]?.body, 'a'.repeat(20_000))
    })

    t.test('that sends more than its window allows is stopped', async t => {
      const client = await place.hostile(t)
      const before = held()
      // One for all: what the client allocates would be counted, too.
      const data = frame(DATA, 0, 1, Buffer.alloc(16_384))
      const attack = { begin: postFrame(1, '/stuck'), part: () => data, most: 4_000, together: 40 }
      // After the reset of the stream, DATA for it is ignored or ends the connection.
      await play(place, client, attack)
      const ending = client.resetOf(1) ?? client.goaway
      // Node may reset its socket, and with it what it has said.
      if (wire === 'own') t.equal(ending, FLOW_CONTROL_ERROR)
      t.ok(held() - before < 32 * MIB)
    })

    t.test('has at most 100 requests in progress, and their uploads never look complete', async t => {
      const client = await place.hostile(t)
      const before = place.seen.length
      client.send(...streams.map(stream => postFrame(stream, '/never')))
      if (wire === 'own') {
        client.send(getFrame(201))
        await client.end(201)
        t.equal(client.resetOf(201), REFUSED_STREAM)
      }
      await waitUntil('all of them', () => place.seen.length - before === 100)
      await place.serve()
      client.socket.destroy()
      const seen = place.seen.slice(before)
      await waitUntil('their end', () => seen.every(({ isWhole }) => isWhole === false))
    })

    t.test('that sends GOAWAY gets the response in progress, no other, and the connection ends', async t => {
      const client = await place.hostile(t)
      const before = place.seen.length
      client.send(postFrame(1, '/upload'))
      await waitUntil('the request', () => place.seen.length > before)
      client.send(...Array<Buffer>(50).fill(frame(GOAWAY, 0, 0, Buffer.alloc(8))), getFrame(3))
      client.send(frame(DATA, END_STREAM, 1, Buffer.from('a')))
      await waitUntil('the end', () => client.closed)
      t.same([...client.statuses()], [[1, [200]]])
      t.equal(place.seen.length - before, 1)
    })
  })

  t.test('a client that never completes', async t => {
    const place = await target(t, certificate, wire, { limits: 'headTimeout: 300ms' })
    const head = frame(HEADERS, END_STREAM, 3, requestFields('/'))
    for (const [what, bytes] of [
      ['a frame’s head', head.subarray(0, 5)],
      ['a frame', head.subarray(0, 20)],
      ['a request’s head', head],
      ['any request', Buffer.alloc(0)],
    ] as const) {
      t.test(`${what} is cut`, async t => {
        const client = await place.hostile(t)
        client.send(bytes)
        t.ok(await endOf(client, 6_000))
      })
      if (bytes.length === 0 || wire === 'node') continue
      t.test(`${what} after its first request is cut`, async t => {
        const client = await place.hostile(t)
        client.send(getFrame(1))
        await client.end(1)
        client.send(bytes)
        t.ok(await endOf(client, 6_000))
      })
    }
    t.test('a request’s head, byte by byte, is cut', async t => {
      const client = await place.hostile(t)
      const whole = frame(HEADERS, END_STREAM | END_HEADERS, 1, requestFields('/'))
      for (const byte of whole) {
        if (client.closed || client.goaway !== undefined) break
        client.send(Buffer.from([byte]))
        await sleep(50)
      }
      t.ok(await endOf(client))
      t.same(client.statuses().get(1), undefined)
    })
  })
})
