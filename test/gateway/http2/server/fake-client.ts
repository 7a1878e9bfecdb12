/** A connection to the HTTP/2 wire without a network: what is sent arrives in one read, and each write is seen. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { Http2ServerConnections, type Http2Settings } from '../../../../gateway/http2/server/connections.js'
import type { ClientLimits } from '../../../../gateway/http2/server/streams.js'
import type { Flood, IncomingRequest, OutgoingResponse } from '../../../../gateway/message.js'
import { type Frame, frame, PREFACE, SETTINGS } from '../../listen/frames.js'

export const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** No limits across connections. */
const FREE: ClientLimits = { carriesMany: false, take: () => 1, giveBack() {}, countReset: () => true }

export class FakeClient {
  readonly connections: Http2ServerConnections
  readonly requests: { readonly req: IncomingRequest; readonly res: OutgoingResponse }[] = []
  readonly floods: Flood[] = []
  readonly failures: unknown[] = []
  /** What the gateway has written, by write. */
  readonly writes: Buffer[] = []
  closed = false
  /** False to take nothing: the write in progress is never completed. */
  reads = true
  readonly #socket: Duplex
  #done: (() => void) | undefined

  constructor(t: Test, settings: Partial<Http2Settings> = {}, limits: Partial<ClientLimits> = {}) {
    this.connections = new Http2ServerConnections(
      {
        request: (req, res) => this.requests.push({ req, res }),
        failed: error => this.failures.push(error),
        flooded: flood => this.floods.push(flood),
      },
      { headTimeoutMs: 10_000, requestTimeoutMs: 3_600_000, keepAliveMs: 65_000, ...settings },
      () => ({ ...FREE, ...limits }),
    )
    this.#socket = new Duplex({
      read() {},
      write: (bytes: Buffer, _encoding, done) => {
        this.writes.push(Buffer.from(bytes))
        if (this.reads) setImmediate(done)
        else this.#done = done
      },
    })
    this.#socket.on('close', () => {
      this.closed = true
    })
    t.teardown(() => this.#socket.destroy())
    this.connections.accept(this.#socket as unknown as Socket, {
      address: '127.0.0.1',
      fingerprints: undefined,
    })
  }

  /** A client that has sent its preface and settings. */
  static async open(
    t: Test,
    settings?: Partial<Http2Settings>,
    limits?: Partial<ClientLimits>,
  ): Promise<FakeClient> {
    const client = new FakeClient(t, settings, limits)
    await client.send(Buffer.from(PREFACE), frame(SETTINGS, 0, 0))
    return client
  }

  /** Sends in one read, and lets the gateway reply. */
  async send(...parts: readonly Buffer[]): Promise<void> {
    this.#socket.push(Buffer.concat(parts))
    for (let i = 0; i < 4; i++) await turn()
  }

  /** Reads again. */
  async resume(): Promise<void> {
    this.reads = true
    this.#done?.()
    for (let i = 0; i < 20; i++) await turn()
  }

  get frames(): Frame[] {
    const bytes = Buffer.concat(this.writes)
    const all: Frame[] = []
    for (let at = 0; at + 9 <= bytes.length; ) {
      const end = at + 9 + bytes.readUIntBE(at, 3)
      const [type = 0, flags = 0] = bytes.subarray(at + 3, at + 5)
      all.push({ type, flags, stream: bytes.readUInt32BE(at + 5), payload: bytes.subarray(at + 9, end) })
      at = end
    }
    return all
  }

  ofType(type: number, stream?: number): Frame[] {
    return this.frames.filter(one => one.type === type && (stream === undefined || one.stream === stream))
  }
}
