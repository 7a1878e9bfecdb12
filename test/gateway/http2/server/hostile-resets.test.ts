/**
 * Requests that are reset before their response: by the client (CVE-2023-44487), or by the gateway because the client
 * made it (CVE-2025-8671). Whatever way, the connection ends, and few requests reach the upstream.
 */
import t from 'tap'
import { waitUntil } from '../../../helpers/wait.js'
import {
  CANCEL,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  fields,
  frame,
  getFrame,
  HAS_PRIORITY,
  HEADERS,
  NO_ERROR,
  PRIORITY,
  postFrame,
  RST_STREAM,
  requestFields,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { ask, onBothWires, openSession } from '../../listen/http2-scene.js'
import { play, target } from './hostile-scene.js'

interface Resets {
  readonly what: string
  /** All frames of one request and its reset. */
  of(stream: number): readonly Buffer[]
}

const MOST_WINDOW = 0x7fff_ffff
const wait = (stream: number) => getFrame(stream, '/never')
const upload = (stream: number) => postFrame(stream, '/never')
const dependsOnItself = (stream: number) => Buffer.concat([code(stream), Buffer.from([1])])

const RESETS: readonly Resets[] = [
  { what: 'cancels', of: id => [wait(id), frame(RST_STREAM, 0, id, code(CANCEL))] },
  { what: 'resets with NO_ERROR', of: id => [wait(id), frame(RST_STREAM, 0, id, code(NO_ERROR))] },
  { what: 'cancels an upload', of: id => [upload(id), frame(RST_STREAM, 0, id, code(CANCEL))] },
  { what: 'adds nothing to the window', of: id => [wait(id), frame(WINDOW_UPDATE, 0, id, code(0))] },
  {
    what: 'adds too much to the window',
    of: id => [wait(id), frame(WINDOW_UPDATE, 0, id, code(MOST_WINDOW))],
  },
  { what: 'sends DATA after its end', of: id => [wait(id), frame(DATA, 0, id, Buffer.from('x'))] },
  { what: 'sends HEADERS after its end', of: id => [wait(id), wait(id)] },
  {
    what: 'makes it depend on itself',
    of: id => [wait(id), frame(PRIORITY, 0, id, dependsOnItself(id))],
  },
  {
    what: 'makes it depend on itself from its beginning',
    of: id => {
      const payload = Buffer.concat([dependsOnItself(id), requestFields('/never')])
      return [frame(HEADERS, END_HEADERS | END_STREAM | HAS_PRIORITY, id, payload)]
    },
  },
  { what: 'sends PRIORITY of a wrong length', of: id => [wait(id), frame(PRIORITY, 0, id, Buffer.alloc(4))] },
  {
    what: 'sends more than its content-length',
    of: id => [postFrame(id, '/never', [['content-length', '1']]), frame(DATA, 0, id, Buffer.from('more'))],
  },
  {
    what: 'sends a malformed head',
    of: id => [frame(HEADERS, END_HEADERS | END_STREAM, id, fields([[':method', 'GET']]))],
  },
  {
    what: 'sends malformed trailers',
    of: id => [upload(id), frame(HEADERS, END_HEADERS | END_STREAM, id, fields([[':path', '/']]))],
  },
]

/** Requests that may reach the upstream before the flood is noticed. */
const MOST_UPSTREAM = 210

onBothWires(t, (t, { wire, certificate }) => {
  t.test('a client that, for each of its requests,', async t => {
    const place = await target(t, certificate, wire)
    for (const { what, of } of RESETS) {
      t.test(what, async t => {
        const before = place.seen.length
        const part = (i: number) => Buffer.concat(of(2 * i + 1))
        const client = await place.hostile(t)
        const { hasEnded, code, sent } = await play(place, client, { part, most: 3_000, together: 20 })
        t.ok(hasEnded)
        if (wire === 'own') {
          t.equal(code, ENHANCE_YOUR_CALM)
          // Before the limit of its client on all connections, which is 1,000.
          t.ok(sent < 800, `it is noticed after ${sent}`)
        }
        const seen = place.seen.slice(before)
        t.ok(seen.length <= MOST_UPSTREAM, `${seen.length} requests upstream`)
        await waitUntil('their end upstream', () => seen.every(({ isWhole }) => isWhole !== undefined))
        t.notOk(
          seen.some(({ method, isWhole }) => method === 'POST' && isWhole),
          'no upload looks complete',
        )
      })
    }

    t.test('cancels, behind a trusted proxy whose connection it shares with others', async t => {
      const shared = await target(t, certificate, wire, { settings: 'trustedProxies: [127.0.0.0/8]' })
      const proxy = await openSession(t, shared.gateway.url, certificate)
      const others = Array.from({ length: 5 }, () => ask(proxy, { ':path': '/bytes/10' }))
      for (let i = 0; i < 300; i += 1) {
        const cancelled = proxy.request({ ':path': '/never', ':authority': 'acme.localhost' })
        cancelled.on('error', () => undefined)
        cancelled.close(CANCEL)
        if (i % 50 === 49) others.push(ask(proxy, { ':path': '/bytes/10' }))
        await new Promise(setImmediate)
      }
      for (const other of others) t.equal((await other).status, 200)
    })

    t.test('opens more than may be open at a time', async t => {
      const before = place.seen.length
      const client = await place.hostile(t)
      const part = (i: number) => upload(2 * i + 1)
      const { hasEnded } = await play(place, client, { part, most: 3_000, together: 20 })
      t.ok(hasEnded)
      t.ok(place.seen.length - before <= 100)
    })
  })
})
