/** What a client can begin on one connection and leave unfinished, so that it is held for it. */
import {
  code,
  DATA,
  frame,
  getFrame,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  postFrame,
  requestFields,
  settings,
  WINDOW_UPDATE,
} from '../../listen/frames.js'

export interface HoardAttack {
  readonly what: string
  readonly bytes: Buffer
  /** Whether it reads what it gets. */
  readonly reads: boolean
  /** Sent behind the preface instead of empty settings. */
  readonly first?: Buffer
}

const MOST_WINDOW = 0x7fff_ffff
const STREAMS = Array.from({ length: 100 }, (_, i) => 2 * i + 1)
const each = (one: (stream: number) => Buffer): Buffer => Buffer.concat(STREAMS.map(one))
const openWindow = frame(WINDOW_UPDATE, 0, 0, code(MOST_WINDOW - 65_535))

export const HOARDS: readonly HoardAttack[] = [
  { what: 'a connection without a request', bytes: Buffer.alloc(0), reads: true },
  {
    what: 'half a head of 16 KiB',
    bytes: frame(HEADERS, 0, 1, Buffer.concat([requestFields('/'), Buffer.alloc(16_000)])),
    reads: true,
  },
  { what: '100 requests that get no answer', bytes: each(stream => getFrame(stream, '/wait')), reads: true },
  {
    what: '100 requests for 1 MiB, with windows of 0',
    bytes: each(stream => getFrame(stream, '/big')),
    first: settings([INITIAL_WINDOW_SIZE, 0]),
    reads: true,
  },
  {
    what: '100 requests for 1 MiB that are not read',
    bytes: Buffer.concat([openWindow, each(stream => getFrame(stream, '/big'))]),
    first: settings([INITIAL_WINDOW_SIZE, MOST_WINDOW]),
    reads: false,
  },
  {
    what: '100 uploads that do not end, 1 MB together',
    bytes: each(stream =>
      Buffer.concat([postFrame(stream, '/wait'), frame(DATA, 0, stream, Buffer.alloc(10_000))]),
    ),
    reads: true,
  },
]
