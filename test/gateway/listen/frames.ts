/** HTTP/2 by hand (RFC 9113 section 4): a client that sends exactly the frames the test gives it. */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { HeaderDecoder } from '../../../gateway/http2/hpack/decoder.js'
import type { Scope } from '../../helpers/scope.js'
import { waitUntil } from '../../helpers/wait.js'

export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
export const SETTINGS = 4
export const PUSH_PROMISE = 5
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const ACK = 1
export const END_STREAM = 1
export const END_HEADERS = 4
export const PADDED = 8
export const HAS_PRIORITY = 0x20
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const INTERNAL_ERROR = 2
export const FLOW_CONTROL_ERROR = 3
export const STREAM_CLOSED = 5
export const FRAME_SIZE_ERROR = 6
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const COMPRESSION_ERROR = 9
export const ENHANCE_YOUR_CALM = 11

/** Settings (RFC 9113 section 6.5.2). */
export const HEADER_TABLE_SIZE = 1
export const ENABLE_PUSH = 2
export const INITIAL_WINDOW_SIZE = 4
export const MAX_FRAME_SIZE = 5

const MOST_BLOCK = { fields: 1_000, bytes: 1_000_000 }

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export function code(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A SETTINGS frame with these values. */
export function settings(...list: readonly (readonly [setting: number, value: number])[]): Buffer {
  const payload = list.map(([setting, value]) => Buffer.concat([Buffer.from([0, setting]), code(value)]))
  return frame(SETTINGS, 0, 0, Buffer.concat(payload))
}

/** An integer of HPACK behind the bits of `first` (RFC 7541 section 5.1). */
export function hpackInteger(first: number, mask: number, value: number): Buffer {
  if (value < mask) return Buffer.from([first | value])
  const bytes = [first | mask]
  let rest = value - mask
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push(0x80 | (rest & 0x7f))
  return Buffer.from([...bytes, rest])
}

export function hpackText(value: string): Buffer {
  return Buffer.concat([hpackInteger(0, 0x7f, value.length), Buffer.from(value, 'latin1')])
}

/** Fields as literals without indexing (RFC 7541 section 6.2.2), whatever their names and values are. */
export function fields(list: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(list.flatMap(([name, value]) => [Buffer.from([0]), hpackText(name), hpackText(value)]))
}

/** The pseudo-header fields of a request, and `more` fields. */
export function requestFields(
  path: string,
  more: readonly (readonly [string, string])[] = [],
  method = 'GET',
): Buffer {
  return fields([
    [':method', method],
    [':scheme', 'https'],
    [':authority', 'acme.localhost'],
    [':path', path],
    ...more,
  ])
}

/** The HEADERS frame of a request that ends with it. */
export function getFrame(stream: number, path = '/'): Buffer {
  return frame(HEADERS, END_HEADERS | END_STREAM, stream, requestFields(path))
}

/** The HEADERS frame of a request whose body follows. */
export function postFrame(
  stream: number,
  path = '/',
  more: readonly (readonly [string, string])[] = [],
): Buffer {
  return frame(HEADERS, END_HEADERS, stream, requestFields(path, more, 'POST'))
}

/** The frames of a connection, from the bytes that arrive. */
export class FrameLog {
  readonly frames: Frame[] = []
  private unread = Buffer.alloc(0)

  read(bytes: Buffer): void {
    this.unread = Buffer.concat([this.unread, bytes])
    while (this.unread.length >= 9) {
      const end = 9 + this.unread.readUIntBE(0, 3)
      if (this.unread.length < end) return
      const [type = 0, flags = 0] = this.unread.subarray(3, 5)
      this.frames.push({
        type,
        flags,
        stream: this.unread.readUInt32BE(5),
        payload: this.unread.subarray(9, end),
      })
      this.unread = this.unread.subarray(end)
    }
  }
}

export interface FrameClientOptions {
  /** The address that it connects from: each is a client of its own. */
  readonly localAddress?: string
  /** Sent behind the preface instead of empty settings. */
  readonly first?: Buffer
}

export class FrameClient {
  readonly socket: TLSSocket
  readonly log = new FrameLog()
  closed = false

  private constructor(socket: TLSSocket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed = true
    })
    socket.on('data', (bytes: Buffer) => this.log.read(bytes))
  }

  /** Connects, sends the preface, and reads the peer's settings. */
  static async open(
    t: Scope,
    port: number,
    { localAddress, first = frame(SETTINGS, 0, 0) }: FrameClientOptions = {},
  ): Promise<FrameClient> {
    const address = { port, host: '127.0.0.1', ...(localAddress !== undefined && { localAddress }) }
    const socket = connect({ ...address, ALPNProtocols: ['h2'], rejectUnauthorized: false })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    socket.setNoDelay(true)
    const client = new FrameClient(socket)
    client.send(Buffer.from(PREFACE), first)
    await client.frame(SETTINGS)
    client.send(frame(SETTINGS, ACK, 0))
    return client
  }

  get frames(): Frame[] {
    return this.log.frames
  }

  send(...parts: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(parts))
  }

  /** Waits for the first frame of a type. */
  frame(type: number): Promise<Frame> {
    return waitUntil(`a frame of type ${type}`, () => this.frames.find(one => one.type === type))
  }

  /** The frames of one stream so far. */
  of(stream: number): Frame[] {
    return this.frames.filter(one => one.stream === stream)
  }

  /** The error code that the connection ends with, 0 if it is no error; undefined before GOAWAY. */
  get goaway(): number | undefined {
    const codes = this.frames
      .filter(({ type }) => type === GOAWAY)
      .map(({ payload }) => payload.readUInt32BE(4))
    return codes.find(code => code !== NO_ERROR) ?? codes[0]
  }

  /** The code that a stream was reset with; undefined if it was not. */
  resetOf(stream: number): number | undefined {
    return this.of(stream)
      .find(({ type }) => type === RST_STREAM)
      ?.payload.readUInt32BE(0)
  }

  /** Waits until a stream has ended, by the end of its response or a reset, or the connection has. */
  async end(stream: number): Promise<void> {
    const isEnd = ({ type, flags }: Frame) =>
      type === RST_STREAM || ((type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0)
    await waitUntil(`the end of stream ${stream}`, () => this.closed || this.of(stream).some(isEnd))
  }

  /** The statuses of all responses, interim ones among them, by stream. */
  statuses(): Map<number, number[]> {
    const decoder = new HeaderDecoder()
    const statuses = new Map<number, number[]>()
    for (const { type, stream, payload } of this.frames) {
      if (type !== HEADERS) continue
      const [status] = decoder
        .decode(payload, MOST_BLOCK)
        .fields.filter(({ name }) => name === ':status')
        .map(({ value }) => Number(value))
      if (status !== undefined) statuses.set(stream, [...(statuses.get(stream) ?? []), status])
    }
    return statuses
  }
}
