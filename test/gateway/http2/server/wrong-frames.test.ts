/** Frames that RFC 9113 forbids: each ends its connection, or its stream alone, with the error code of its section. */
import t from 'tap'
import {
  ACK,
  CONTINUATION,
  code,
  DATA,
  ENABLE_PUSH,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  frame,
  GOAWAY,
  getFrame,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  INTERNAL_ERROR,
  MAX_FRAME_SIZE,
  PADDED,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  postFrame,
  RST_STREAM,
  requestFields,
  SETTINGS,
  STREAM_CLOSED,
  settings,
  WINDOW_UPDATE,
} from '../../listen/frames.js'
import { onBothWires } from '../../listen/http2-scene.js'
import { endOf, target } from './hostile-scene.js'

const MOST_WINDOW = 0x7fff_ffff
const bytes = (count: number) => Buffer.alloc(count)
const open = postFrame(1, '/never')
const done = getFrame(1, '/never')
const head = requestFields('/')
const tooLarge = 16_385
const dependency = (stream: number) => Buffer.concat([code(stream), Buffer.from([1])])

interface Wrong {
  readonly what: string
  readonly frames: readonly Buffer[]
  readonly codes: readonly number[]
  /** Node's wire does nothing, in some versions of Node. */
  readonly nodeMayIgnore?: boolean
}

/** Of the connection. */
const WRONG: readonly Wrong[] = [
  { what: 'DATA of no stream', frames: [frame(DATA, 0, 0, bytes(1))], codes: [PROTOCOL_ERROR] },
  { what: 'HEADERS of no stream', frames: [frame(HEADERS, 5, 0, head)], codes: [PROTOCOL_ERROR] },
  {
    what: 'PRIORITY of no stream',
    frames: [frame(PRIORITY, 0, 0, bytes(5))],
    codes: [PROTOCOL_ERROR],
    nodeMayIgnore: true,
  },
  {
    what: 'PRIORITY of 4 bytes, of an idle stream',
    frames: [frame(PRIORITY, 0, 99, bytes(4))],
    codes: [PROTOCOL_ERROR, FRAME_SIZE_ERROR],
    nodeMayIgnore: true,
  },
  {
    what: 'HEADERS of no stream that depends on itself',
    frames: [frame(HEADERS, 0x25, 0, Buffer.concat([dependency(0), head]))],
    codes: [PROTOCOL_ERROR],
  },
  { what: 'RST_STREAM of no stream', frames: [frame(RST_STREAM, 0, 0, code(8))], codes: [PROTOCOL_ERROR] },
  { what: 'CONTINUATION of no stream', frames: [frame(CONTINUATION, 4, 0, head)], codes: [PROTOCOL_ERROR] },
  { what: 'SETTINGS of a stream', frames: [open, frame(SETTINGS, 0, 1)], codes: [PROTOCOL_ERROR] },
  { what: 'PING of a stream', frames: [open, frame(PING, 0, 1, bytes(8))], codes: [PROTOCOL_ERROR] },
  { what: 'GOAWAY of a stream', frames: [open, frame(GOAWAY, 0, 1, bytes(8))], codes: [PROTOCOL_ERROR] },
  { what: 'a stream with an even number', frames: [getFrame(2)], codes: [PROTOCOL_ERROR] },
  {
    what: 'a stream with a lower number than the last',
    frames: [getFrame(5), getFrame(3)],
    codes: [PROTOCOL_ERROR, STREAM_CLOSED],
    nodeMayIgnore: true,
  },
  { what: 'DATA of an idle stream', frames: [frame(DATA, 0, 9, bytes(1))], codes: [PROTOCOL_ERROR] },
  {
    what: 'RST_STREAM of an idle stream',
    frames: [frame(RST_STREAM, 0, 9, code(8))],
    codes: [PROTOCOL_ERROR],
  },
  {
    what: 'WINDOW_UPDATE of an idle stream',
    frames: [frame(WINDOW_UPDATE, 0, 9, code(1))],
    codes: [PROTOCOL_ERROR],
  },
  { what: 'PUSH_PROMISE', frames: [open, frame(PUSH_PROMISE, 4, 1, code(2))], codes: [PROTOCOL_ERROR] },
  { what: 'CONTINUATION alone', frames: [open, frame(CONTINUATION, 4, 1, head)], codes: [PROTOCOL_ERROR] },
  {
    what: 'CONTINUATION of another stream',
    frames: [frame(HEADERS, END_STREAM, 1, head), frame(CONTINUATION, 4, 3, head)],
    codes: [PROTOCOL_ERROR],
  },
  ...(
    [
      ['DATA', frame(DATA, 0, 1, bytes(1))],
      ['HEADERS of another stream', getFrame(3)],
      ['PING', frame(PING, 0, 0, bytes(8))],
      ['an unknown frame', frame(77, 0, 0)],
    ] as const
  ).map(([what, between]) => ({
    what: `${what} within a head`,
    frames: [frame(HEADERS, END_STREAM, 1, head), between],
    codes: [PROTOCOL_ERROR],
  })),
  ...(
    [
      ['DATA', frame(DATA, 0, 1, bytes(tooLarge))],
      ['HEADERS', frame(HEADERS, 5, 1, bytes(tooLarge))],
      ['an unknown frame', frame(77, 0, 0, bytes(tooLarge))],
      ['PING', frame(PING, 0, 0, bytes(tooLarge))],
    ] as const
  ).map(([what, large]) => ({
    what: `${what} above the largest size`,
    frames: [open, large],
    codes: [FRAME_SIZE_ERROR],
  })),
  { what: 'SETTINGS of 5 bytes', frames: [frame(SETTINGS, 0, 0, bytes(5))], codes: [FRAME_SIZE_ERROR] },
  { what: 'ACK with settings', frames: [frame(SETTINGS, ACK, 0, bytes(6))], codes: [FRAME_SIZE_ERROR] },
  { what: 'PING of 7 bytes', frames: [frame(PING, 0, 0, bytes(7))], codes: [FRAME_SIZE_ERROR] },
  { what: 'GOAWAY of 7 bytes', frames: [frame(GOAWAY, 0, 0, bytes(7))], codes: [FRAME_SIZE_ERROR] },
  {
    what: 'RST_STREAM of 3 bytes',
    frames: [open, frame(RST_STREAM, 0, 1, bytes(3))],
    codes: [FRAME_SIZE_ERROR],
  },
  {
    what: 'WINDOW_UPDATE of 5 bytes',
    frames: [open, frame(WINDOW_UPDATE, 0, 1, bytes(5))],
    codes: [FRAME_SIZE_ERROR],
  },
  {
    what: 'HEADERS too short for its padding',
    frames: [
      frame(HEADERS, PADDED | END_HEADERS, 1, Buffer.concat([Buffer.from([200]), head.subarray(0, 20)])),
    ],
    codes: [PROTOCOL_ERROR],
  },
  {
    what: 'DATA of more padding than it has bytes',
    frames: [open, frame(DATA, PADDED, 1, Buffer.from([5, 0, 0, 0, 0]))],
    codes: [PROTOCOL_ERROR],
  },
  { what: 'ENABLE_PUSH of 2', frames: [settings([ENABLE_PUSH, 2])], codes: [PROTOCOL_ERROR] },
  {
    what: 'INITIAL_WINDOW_SIZE of 32 bits',
    frames: [settings([INITIAL_WINDOW_SIZE, MOST_WINDOW + 1])],
    codes: [FLOW_CONTROL_ERROR],
  },
  {
    what: 'INITIAL_WINDOW_SIZE beyond which a window overflows',
    frames: [
      done,
      frame(WINDOW_UPDATE, 0, 1, code(MOST_WINDOW - 65_535)),
      settings([INITIAL_WINDOW_SIZE, 65_536]),
    ],
    codes: [FLOW_CONTROL_ERROR],
    nodeMayIgnore: true,
  },
  { what: 'MAX_FRAME_SIZE too small', frames: [settings([MAX_FRAME_SIZE, 16_383])], codes: [PROTOCOL_ERROR] },
  {
    what: 'MAX_FRAME_SIZE too large',
    frames: [settings([MAX_FRAME_SIZE, 2 ** 24])],
    codes: [PROTOCOL_ERROR],
  },
  {
    what: 'a window of the connection with nothing added',
    frames: [frame(WINDOW_UPDATE, 0, 0, code(0))],
    codes: [PROTOCOL_ERROR],
  },
  {
    what: 'a window of the connection with too much added',
    frames: [frame(WINDOW_UPDATE, 0, 0, code(MOST_WINDOW))],
    codes: [FLOW_CONTROL_ERROR],
  },
]

/** Of the stream, or of the connection as well. */
const WRONG_IN_STREAM: readonly Wrong[] = [
  {
    what: 'a window with nothing added',
    frames: [open, frame(WINDOW_UPDATE, 0, 1, code(0))],
    codes: [PROTOCOL_ERROR],
  },
  {
    what: 'a window with too much added',
    frames: [open, frame(WINDOW_UPDATE, 0, 1, code(MOST_WINDOW))],
    codes: [FLOW_CONTROL_ERROR],
  },
  { what: 'DATA after the end', frames: [done, frame(DATA, 0, 1, bytes(1))], codes: [STREAM_CLOSED] },
  { what: 'HEADERS after the end', frames: [done, done], codes: [STREAM_CLOSED] },
  {
    what: 'a dependency on itself',
    frames: [done, frame(PRIORITY, 0, 1, dependency(1))],
    codes: [PROTOCOL_ERROR],
  },
  { what: 'PRIORITY of 4 bytes', frames: [done, frame(PRIORITY, 0, 1, bytes(4))], codes: [FRAME_SIZE_ERROR] },
  {
    what: 'DATA after a reset',
    frames: [open, frame(RST_STREAM, 0, 1, code(8)), frame(DATA, 0, 1, bytes(1))],
    codes: [STREAM_CLOSED],
  },
]

onBothWires(t, (t, { wire, certificate }) => {
  t.test('the connection ends at', async t => {
    const place = await target(t, certificate, wire)
    for (const { what, frames, codes, nodeMayIgnore = false } of WRONG) {
      t.test(what, async t => {
        const client = await place.hostile(t)
        const before = place.seen.length
        client.send(...frames)
        const mayBeIgnored = wire === 'node' && nodeMayIgnore
        const hasEnded = await endOf(client)
        t.ok(hasEnded || mayBeIgnored)
        // Node sends INTERNAL_ERROR in place of many.
        const right = wire === 'node' ? [...codes, INTERNAL_ERROR] : codes
        if (hasEnded) t.ok(right.includes(client.goaway as number), `error code ${client.goaway}`)
        t.notOk(place.seen.slice(before).some(({ method, isWhole }) => method === 'POST' && isWhole))
        await place.serve()
      })
    }
  })

  t.test('the stream ends at', async t => {
    const place = await target(t, certificate, wire)
    for (const { what, frames, codes } of WRONG_IN_STREAM) {
      t.test(what, async t => {
        const client = await place.hostile(t)
        client.send(...frames, getFrame(101))
        // Node ends the connection, or stops to read it: this is all it takes.
        if (wire === 'own') {
          await client.end(101)
          const seen = client.goaway ?? client.resetOf(1)
          t.ok(codes.includes(seen as number), `error code ${seen}`)
          if (client.goaway === undefined) t.same(client.statuses().get(101), [200], 'others go on')
        }
        await place.serve()
        t.notOk(place.seen.some(({ method, isWhole }) => method === 'POST' && isWhole))
      })
    }
  })
})
