/** The header compression of Node's HTTP/2 at the other end of a socket, to which we speak in frames. */
import { EventEmitter, once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { connect as connectSocket, createServer as createSocketServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { HeaderDecoder } from '../../../../gateway/http2/hpack/decoder.js'
import { BEGIN_ROOM, fieldRoom, HeaderEncoder } from '../../../../gateway/http2/hpack/encoder.js'

export type Field = readonly [name: string, value: string]

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const HEAD = 9
const HEADERS = 1
const SETTINGS = 4
const GOAWAY = 7
const ACK = 1
const END_STREAM = 1
const END_HEADERS = 4
const PADDED = 8
const PRIORITY = 0x20
const HEADER_TABLE_SIZE = 1

/** Node takes it, its types do not know it. */
const NO_DATE = { endStream: true, sendDate: false }

/** The names and values of a flat list, in pairs. */
export function pairs(flat: readonly string[]): Field[] {
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? ''] as const] : []))
}

/** Our end: it compresses and reads blocks with our code, and knows just enough of frames to send and take them. */
export class OurEnd extends EventEmitter {
  readonly encoder = new HeaderEncoder()
  readonly #decoder = new HeaderDecoder()
  readonly #socket: Socket
  #unread = Buffer.alloc(0)
  /** How much of the client's preface is still to come. */
  #skip = 0

  constructor(socket: Socket, isClient: boolean) {
    super()
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', () => {})
    socket.on('close', () => this.#fail('Node has closed the connection'))
    if (isClient) socket.write(PREFACE)
    else this.#skip = PREFACE.length
    this.#send(SETTINGS, 0, 0, Buffer.alloc(0))
  }

  /** Tells Node how much of our table it may use. */
  offerTable(bytes: number): void {
    const setting = Buffer.alloc(6)
    setting.writeUInt16BE(HEADER_TABLE_SIZE, 0)
    setting.writeUInt32BE(bytes, 2)
    this.#send(SETTINGS, 0, 0, setting)
  }

  /** A message without a body. */
  write(stream: number, fields: readonly Field[]): number {
    const target = Buffer.alloc(fields.reduce((sum, field) => sum + fieldRoom(...field), BEGIN_ROOM))
    let at = this.encoder.begin(target, 0)
    for (const [name, value] of fields) at = this.encoder.field(target, at, name, value)
    this.#send(HEADERS, END_STREAM | END_HEADERS, stream, target.subarray(0, at))
    return at
  }

  #read(chunk: Buffer): void {
    let rest = Buffer.concat([this.#unread, chunk])
    const skipped = Math.min(this.#skip, rest.length)
    this.#skip -= skipped
    rest = rest.subarray(skipped)
    while (rest.length >= HEAD && rest.length >= HEAD + rest.readUIntBE(0, 3)) {
      const end = HEAD + rest.readUIntBE(0, 3)
      this.#take(rest[3] ?? 0, rest[4] ?? 0, rest.readUInt32BE(5), rest.subarray(HEAD, end))
      rest = rest.subarray(end)
    }
    this.#unread = rest
  }

  #take(type: number, flags: number, stream: number, payload: Buffer): void {
    if (type === GOAWAY && payload.readUInt32BE(4) !== 0)
      this.#fail(`Node ends the connection with code ${payload.readUInt32BE(4)}`)
    if (type === SETTINGS && (flags & ACK) === 0) {
      for (let at = 0; at < payload.length; at += 6)
        if (payload.readUInt16BE(at) === HEADER_TABLE_SIZE) this.encoder.resize(payload.readUInt32BE(at + 2))
      this.#send(SETTINGS, ACK, 0, Buffer.alloc(0))
      this.emit('settings')
    }
    if (type !== HEADERS) return
    if ((flags & END_HEADERS) === 0) throw new Error('a block in two frames: make it smaller')
    const from = ((flags & PADDED) === 0 ? 0 : 1) + ((flags & PRIORITY) === 0 ? 0 : 5)
    const to = payload.length - ((flags & PADDED) === 0 ? 0 : (payload[0] ?? 0))
    const { fields } = this.#decoder.decode(payload.subarray(from, to), { fields: 1000, bytes: 65_536 })
    this.emit(
      'block',
      stream,
      fields.map(({ name, value }) => [name, value]),
    )
  }

  /** Those who wait for a block see it; at the end of a test nobody does. */
  #fail(why: string): void {
    if (this.listenerCount('error') > 0) this.emit('error', new Error(why))
  }

  #send(type: number, flags: number, stream: number, payload: Buffer): void {
    const head = Buffer.alloc(HEAD)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(stream, 5)
    this.#socket.write(Buffer.concat([head, payload]))
  }
}

/** We are the client, Node the server. What Node reads of each request, and its session. */
export async function nodeAsServer(
  t: Test,
  onRequest: (read: Field[], respond: (fields: readonly Field[]) => void) => void,
): Promise<{ ours: OurEnd; session: ServerHttp2Session }> {
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, _headers: unknown, _flags: unknown, raw: string[]) => {
    stream.on('error', () => {})
    onRequest(pairs(raw), fields => {
      stream.respond({ ':status': 200, ...Object.fromEntries(fields) }, NO_DATE)
    })
  })
  const sessions = once(server, 'session')
  const port = await portOf(server)
  const ours = new OurEnd(connectSocket(port, '127.0.0.1'), true)
  const [session] = (await sessions) as [ServerHttp2Session]
  t.teardown(() => {
    session.destroy()
    server.close()
  })
  return { ours, session }
}

/** We are the server, Node the client. */
export async function nodeAsClient(t: Test): Promise<{ ours: OurEnd; session: ClientHttp2Session }> {
  const server = createSocketServer()
  const sockets = once(server, 'connection')
  const session = connect(`http://127.0.0.1:${await portOf(server)}`)
  session.on('error', () => {})
  const [socket] = (await sockets) as [Socket]
  t.teardown(() => {
    session.destroy()
    socket.destroy()
    server.close()
  })
  return { ours: new OurEnd(socket, false), session }
}

async function portOf(server: {
  listen(port: number, host: string, done: () => void): unknown
  address(): unknown
}): Promise<number> {
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return (server.address() as { port: number }).port
}
