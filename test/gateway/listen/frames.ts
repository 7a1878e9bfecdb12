/** HTTP/2 by hand (RFC 9113 section 4): a client that sends exactly the frames the test gives it. */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { waitUntil } from '../../helpers/wait.js'

export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
export const SETTINGS = 4
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const ACK = 1
export const END_STREAM = 1
export const END_HEADERS = 4
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const CANCEL = 8
export const INTERNAL_ERROR = 2
export const ENHANCE_YOUR_CALM = 11

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

/** Fields as literals without indexing (RFC 7541 section 6.2.2); names and values must be shorter than 127 bytes. */
export function fields(list: readonly (readonly [name: string, value: string])[]): Buffer {
  const text = (value: string): Buffer =>
    Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')])
  return Buffer.concat(list.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
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

export class FrameClient {
  readonly socket: TLSSocket
  readonly frames: Frame[] = []
  closed = false
  private unread = Buffer.alloc(0)

  private constructor(socket: TLSSocket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed = true
    })
    socket.on('data', (bytes: Buffer) => this.read(bytes))
  }

  /** Connects, sends the preface, and reads the peer's settings. */
  static async open(t: Test, port: number): Promise<FrameClient> {
    const options = { port, host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false }
    const socket = connect(options)
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    const client = new FrameClient(socket)
    client.send(Buffer.from(PREFACE), frame(SETTINGS, 0, 0))
    await client.frame(SETTINGS)
    client.send(frame(SETTINGS, ACK, 0))
    return client
  }

  send(...parts: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(parts))
  }

  /** Waits for the first frame of a type. */
  frame(type: number): Promise<Frame> {
    return waitUntil(`a frame of type ${type}`, () => this.frames.find(one => one.type === type))
  }

  private read(bytes: Buffer): void {
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
