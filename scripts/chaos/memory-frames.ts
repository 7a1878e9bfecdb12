/** HTTP/2 as bytes (RFC 9113), for what no client library sends. */
import type { Socket } from 'node:net'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const DATA = 0
const HEADERS = 1
const SETTINGS = 4
const WINDOW_UPDATE = 8
const CONTINUATION = 9
const END_HEADERS = 4
const FIRST_WINDOW = 65_535

function frame(type: number, stream: number, payload: Buffer = Buffer.alloc(0), flags = 0): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A literal field without indexing (RFC 7541, section 6.2.2), of less than 127 bytes each. */
const field = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])

/** A connection that sends nothing else. */
export const OPENING = Buffer.concat([PREFACE, frame(SETTINGS, 0)])

/** As much as is read of a request's head, whose last frame is missing (section 6.10). */
export function halfHead(host: string): Buffer {
  // :method GET, :scheme https, :path /, :authority
  const start = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x01, host.length]), Buffer.from(host)])
  const fields = Buffer.concat(Array(77).fill(field('x-a', 'a'.repeat(118))))
  return Buffer.concat([OPENING, frame(HEADERS, 1, start), ...Array(2).fill(frame(CONTINUATION, 1, fields))])
}

const STREAMS = [1, 3]
const LARGE = 16_000
/** Bytes of a window that are sent one by one. With more, the gateway ends a connection for its useless bytes. */
const TINY = 12_000
const AT_ONCE = 2_000
const QUIET_MS = 300

/**
 * Two uploads on `socket`: large frames until the upstream takes no more, then a frame for each of the last bytes that the
 * gateway has asked for.
 */
export function sendTinyFrames(socket: Socket, host: string, path: string): void {
  const head = Buffer.concat([
    field(':method', 'POST'),
    field(':scheme', 'https'),
    field(':path', path),
    field(':authority', host),
    field('content-length', '100000000'),
  ])
  const windows = new Map([0, ...STREAMS].map(stream => [stream, FIRST_WINDOW]))
  const left = (stream: number) => windows.get(stream) ?? 0
  let askedAt = performance.now()
  const large = Buffer.alloc(LARGE, 'a')
  const fill = () => {
    for (const stream of STREAMS) {
      while (!socket.writableNeedDrain && left(0) >= LARGE && left(stream) >= LARGE + TINY) {
        for (const one of [0, stream]) windows.set(one, left(one) - LARGE)
        socket.write(frame(DATA, stream, large))
      }
    }
  }
  let received: Buffer = Buffer.alloc(0)
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes])
    for (let size = sizeOf(received); size <= received.length; size = sizeOf(received)) {
      const stream = received.readUInt32BE(5)
      if (received[3] === WINDOW_UPDATE) {
        windows.set(stream, left(stream) + received.readUInt32BE(9))
        askedAt = performance.now()
      }
      received = received.subarray(size)
    }
    fill()
  })
  socket.on('drain', fill)
  socket.write(OPENING)
  for (const stream of STREAMS) socket.write(frame(HEADERS, stream, head, END_HEADERS))
  fill()
  const some = (stream: number) => Buffer.concat(Array(AT_ONCE).fill(frame(DATA, stream, Buffer.from('a'))))
  const pieces = STREAMS.map(some)
  let unsent = TINY
  const timer = setInterval(() => {
    if (socket.destroyed || unsent === 0) return clearInterval(timer)
    if (performance.now() - askedAt < QUIET_MS || socket.writableLength > 0) return
    unsent -= AT_ONCE
    for (const piece of pieces) socket.write(piece)
  }, 100)
}

/** Size of the first frame; infinite until its head has arrived. */
const sizeOf = (bytes: Buffer): number =>
  bytes.length < 9 ? Number.POSITIVE_INFINITY : 9 + bytes.readUIntBE(0, 3)
