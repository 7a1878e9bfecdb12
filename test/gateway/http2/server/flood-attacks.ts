/** What costs the client of a connection nothing, each a little beyond its limit (docs/network.md). */
import type { Flood } from '../../../../gateway/message.js'
import {
  ACK,
  CANCEL,
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  hpackText,
  PING,
  PRIORITY,
  RST_STREAM,
  requestFields,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../listen/frames.js'

export interface FloodAttack {
  readonly what: string
  /** By which it is counted. */
  readonly flood: Flood
  readonly bytes: Buffer
}

const WHOLE = END_HEADERS | END_STREAM

export const times = (count: number, one: Buffer): Buffer => Buffer.concat(Array(count).fill(one))
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
/** A field that is put into the table (RFC 7541 section 6.2.1), and the index of the last one. */
const inserted = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0x40]), hpackText(name), hpackText(value)])
const LAST_INSERTED = 0xbe
const padded = (padding: number): Buffer => Buffer.concat([Buffer.from([padding]), Buffer.alloc(padding)])

const WHAT: readonly (readonly [what: string, flood: Flood, bytes: Buffer])[] = [
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
    'DATA frames of a stream that was reset',
    'idle-frames',
    Buffer.concat([
      post(1, '1'),
      frame(DATA, 0, 1, Buffer.alloc(2)),
      times(2_100, frame(DATA, 0, 1, Buffer.alloc(1))),
    ]),
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
  [
    'bytes that stand for thousands of times as many (HPACK bomb)',
    'header-compression',
    Buffer.concat([
      frame(HEADERS, WHOLE, 1, Buffer.concat([requestFields('/wait'), inserted('x', 'a'.repeat(3_968))])),
      frame(HEADERS, WHOLE, 3, Buffer.concat([requestFields('/wait'), Buffer.alloc(16_000, LAST_INSERTED)])),
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

export const FLOODS: readonly FloodAttack[] = WHAT.map(([what, flood, bytes]) => ({ what, flood, bytes }))
