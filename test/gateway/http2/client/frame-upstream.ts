/** An upstream that sends exactly the frames the test gives it. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { HeaderDecoder } from '../../../../gateway/http2/hpack/decoder.js'
import { waitUntil } from '../../../helpers/wait.js'
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Frame,
  FrameLog,
  fields,
  frame,
  HEADERS,
  PREFACE,
  SETTINGS,
} from '../../listen/frames.js'

const MOST_BLOCK = { fields: 1_000, bytes: 1_000_000 }

/** One connection of the gateway. */
export class FramePeer {
  readonly socket: Socket
  closed = false
  readonly #log = new FrameLog()
  readonly #decoder = new HeaderDecoder()
  #preface = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed = true
    })
    socket.on('data', (bytes: Buffer) => {
      if (this.#preface.length === PREFACE.length) this.#log.read(bytes)
      else {
        const all = Buffer.concat([this.#preface, bytes])
        this.#preface = all.subarray(0, PREFACE.length)
        this.#log.read(all.subarray(PREFACE.length))
      }
    })
  }

  /** What came first. */
  get preface(): string {
    return this.#preface.toString('latin1')
  }

  get frames(): readonly Frame[] {
    return this.#log.frames
  }

  send(...parts: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(parts))
  }

  ofType(type: number, stream?: number): Frame[] {
    return this.frames.filter(one => one.type === type && (stream === undefined || one.stream === stream))
  }

  /** Waits for a frame of a type, on a stream if one is given. */
  frame(type: number, stream?: number): Promise<Frame> {
    return waitUntil(`a frame of type ${type}`, () => this.ofType(type, stream)[0])
  }

  /** Waits for the head of the request on a stream, the first one if none is given. */
  async request(stream = 1): Promise<Frame> {
    return this.frame(HEADERS, stream)
  }

  /** The fields of the next head that was not yet decoded; heads must be decoded in their order. */
  decode({ payload }: Frame): Map<string, string> {
    return new Map(this.#decoder.decode(payload, MOST_BLOCK).fields.map(({ name, value }) => [name, value]))
  }
}

export interface FrameUpstream {
  readonly url: string
  readonly port: number
  readonly peers: readonly FramePeer[]
  /** Waits for the connection with that index. */
  peer(index?: number): Promise<FramePeer>
}

/** Listens on a free port. Each connection gets `first`: empty SETTINGS and an acknowledgement unless given. */
export async function frameUpstream(
  t: Test,
  script: (peer: FramePeer) => unknown = () => {},
  first: readonly Buffer[] = [frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)],
): Promise<FrameUpstream> {
  const peers: FramePeer[] = []
  const server = createServer({ noDelay: true, allowHalfOpen: false }, socket => {
    const peer = new FramePeer(socket)
    peers.push(peer)
    peer.send(...first)
    Promise.resolve(script(peer)).catch(() => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const { socket } of peers) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const peer = (index = 0): Promise<FramePeer> => waitUntil(`connection ${index}`, () => peers[index])
  return { url: `http://127.0.0.1:${port}`, port, peers, peer }
}

/** The HEADERS frame of a response. */
export function head(
  stream: number,
  status: number | string = 200,
  more: readonly (readonly [string, string])[] = [],
  flags = 0,
): Buffer {
  return frame(HEADERS, END_HEADERS | flags, stream, fields([[':status', String(status)], ...more]))
}

/** A whole response without a body. */
export const whole = (stream: number, status?: number | string): Buffer =>
  head(stream, status, [], END_STREAM)
