/** What a client may send too much of: its connection ends with ENHANCE_YOUR_CALM, and the metrics count it by kind. */
import t from 'tap'
import type { Flood } from '../../../gateway/message.js'
import { OK } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { answering } from '../forward/gateway.js'
import {
  ACK,
  CANCEL,
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FrameClient,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PRIORITY,
  RST_STREAM,
  requestFields,
  SETTINGS,
  WINDOW_UPDATE,
} from '../listen/frames.js'
import { ask, onBothWires } from '../listen/http2-scene.js'

const NOTHING = Buffer.alloc(0)
const WHOLE = END_HEADERS | END_STREAM

const times = (count: number, one: Buffer): Buffer => Buffer.concat(Array(count).fill(one))
const streams = (count: number): number[] => Array.from({ length: count }, (_, i) => 2 * i + 1)
const each = (count: number, one: (stream: number) => Buffer): Buffer =>
  Buffer.concat(streams(count).map(one))

const get = (stream: number): Buffer => frame(HEADERS, WHOLE, stream, requestFields('/wait'))
const post = (stream: number, length?: string): Buffer =>
  frame(
    HEADERS,
    END_HEADERS,
    stream,
    requestFields('/wait', length === undefined ? [] : [['content-length', length]], 'POST'),
  )
const padded = (padding: number): Buffer => Buffer.concat([Buffer.from([padding]), Buffer.alloc(padding)])

/** Each goes a little beyond its bound. */
const FLOODS: readonly (readonly [what: string, flood: Flood, bytes: Buffer])[] = [
  ['pings', 'pings', times(201, frame(PING, 0, 0, Buffer.alloc(8)))],
  ['acknowledgements of pings', 'pings', times(201, frame(PING, ACK, 0, Buffer.alloc(8)))],
  ['settings', 'settings', times(201, frame(SETTINGS, 0, 0))],
  ['a hundred settings in a frame', 'settings', frame(SETTINGS, 0, 0, Buffer.alloc(600))],
  ['acknowledgements of settings', 'idle-frames', times(2_100, frame(SETTINGS, ACK, 0))],
  ['frames of an unknown type', 'idle-frames', times(2_100, frame(77, 0, 0, Buffer.alloc(3)))],
  ['PRIORITY frames', 'idle-frames', times(2_100, frame(PRIORITY, 0, 1, Buffer.alloc(5, 9)))],
  ['tiny openings of the window', 'idle-frames', times(2_100, frame(WINDOW_UPDATE, 0, 0, code(1)))],
  ['empty DATA frames', 'idle-frames', Buffer.concat([post(1), times(2_100, frame(DATA, 0, 1))])],
  [
    'DATA frames with nothing but padding',
    'idle-frames',
    Buffer.concat([post(1), times(2_100, frame(DATA, 0x8, 1, padded(9)))]),
  ],
  [
    'empty CONTINUATION frames',
    'continuations',
    Buffer.concat([frame(HEADERS, END_STREAM, 1, requestFields('/')), times(9, frame(CONTINUATION, 0, 1))]),
  ],
  [
    'CONTINUATION frames that are full',
    'continuations',
    Buffer.concat([
      frame(HEADERS, END_STREAM, 1, requestFields('/')),
      times(4, frame(CONTINUATION, 0, 1, Buffer.alloc(16_384))),
    ]),
  ],
  ['requests beyond those that may be open', 'streams', each(301, get)],
  ...(
    [
      ['cancelled', stream => [get(stream), frame(RST_STREAM, 0, stream, code(CANCEL))]],
      [
        'whose window is opened by nothing',
        stream => [get(stream), frame(WINDOW_UPDATE, 0, stream, code(0))],
      ],
      [
        'whose window is opened too far',
        stream => [get(stream), frame(WINDOW_UPDATE, 0, stream, code(0x7fffffff))],
      ],
      ['that go on behind their end', stream => [get(stream), frame(DATA, 0, stream)]],
      ['with trailers behind their end', stream => [get(stream), get(stream)]],
      ['that depend on themselves', stream => [get(stream), frame(PRIORITY, 0, stream, priority(stream))]],
      ['with a priority cut short', stream => [get(stream), frame(PRIORITY, 0, stream, Buffer.alloc(4))]],
      ['longer than announced', stream => [post(stream, '1'), frame(DATA, 0, stream, Buffer.alloc(2))]],
      [
        'shorter than announced',
        stream => [post(stream, '2'), frame(DATA, END_STREAM, stream, Buffer.alloc(1))],
      ],
      ['without a method', stream => [frame(HEADERS, WHOLE, stream, requestFields('/', [], ''))]],
    ] as readonly (readonly [string, (stream: number) => Buffer[]])[]
  ).map(
    ([what, frames]) =>
      [`requests ${what}`, 'resets', each(201, stream => Buffer.concat(frames(stream)))] as const,
  ),
]

function priority(stream: number): Buffer {
  return Buffer.concat([code(stream), Buffer.from([1])])
}

onBothWires(t, async (t, { wire, scene }) => {
  if (wire === 'node') return
  for (const [what, flood, bytes] of FLOODS) {
    t.test(`too many ${what} end the connection`, async t => {
      const { port, gateway, session, upstream } = await scene(t, answering(OK))
      const client = await FrameClient.open(t, port)
      client.send(bytes)
      const { payload } = await client.frame(GOAWAY)
      t.equal(payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
      await waitUntil('the end', () => client.closed)
      const counted = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
      t.match(counted, `sluice_http2_floods_total{flood="${flood}"} 1\n`)
      await waitUntil('the end upstream', () =>
        upstream.connections.every(({ closed, ended }) => closed || ended),
      )
      t.equal((await ask(session, {})).status, 200, 'others are served')
    })
  }

  t.test('a client may go up to its bounds', async t => {
    const { port } = await scene(t, answering(OK))
    const client = await FrameClient.open(t, port)
    client.send(
      times(100, frame(PING, 0, 0, Buffer.alloc(8))),
      times(90, frame(SETTINGS, 0, 0)),
      times(1_900, frame(WINDOW_UPDATE, 0, 0, code(1))),
      frame(HEADERS, END_STREAM, 1, requestFields('/')),
      times(7, frame(CONTINUATION, 0, 1)),
      frame(CONTINUATION, END_HEADERS, 1, NOTHING),
    )
    await waitUntil('the answer', () => client.frames.some(one => one.stream === 1 && one.type === DATA))
    t.notOk(client.closed)
  })

  t.test('a client of gRPC may send a ping for each frame that it gets', async t => {
    const { port } = await scene(t, answering(OK))
    const client = await FrameClient.open(t, port)
    for (let stream = 1; stream < 240; stream += 2) {
      client.send(frame(HEADERS, WHOLE, stream, requestFields('/')))
      await waitUntil('the answer', () => client.of(stream).some(({ type }) => type === DATA))
      client.send(times(2, frame(PING, 0, 0, Buffer.alloc(8))))
    }
    await waitUntil('the replies', () => client.frames.filter(({ type }) => type === PING).length === 240)
    t.notOk(client.closed)
  })
})
