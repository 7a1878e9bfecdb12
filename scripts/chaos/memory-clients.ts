/** Clients that begin something and never finish it. */
import {
  type ClientHttp2Stream,
  connect as connectHttp2,
  type OutgoingHttpHeaders,
  type Settings,
} from 'node:http2'
import { connect, type Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { halfHead, OPENING, sendTinyFrames } from './memory-frames.js'

/** The connection number `n`: where it leads, and where it comes from. */
interface Place {
  readonly n: number
  readonly port: number
  readonly address: string
  readonly ca: string | undefined
}
/** Opens a connection; returns what closes it. */
type Open = (place: Place) => () => unknown

export interface Kind {
  readonly tls?: boolean
  readonly lastsMs?: number
  /** The most. */
  readonly connections?: number
  readonly open: Open
}

const HOST = 'globex.localhost'
const MIB = 1024 * 1024
/** How long tiny pieces are sent: before them, the system's buffers in front of an upstream have to be filled. */
export const TINY_MS = 20_000
/** Names, and the first segments of their paths. */
export const UPSTREAMS = ['app', 'app2', 'app3', 'app4']
const CHUNK = Buffer.alloc(256 * 1024, 'a')

/** 16 KiB of a TLS handshake record, of which the last byte is missing. */
const HALF_HANDSHAKE = Buffer.concat([
  Buffer.from([22, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb]),
  Buffer.alloc(16_000),
])

/** Writes that many bytes as the other end takes them. */
function fill(stream: Writable, bytes: number): void {
  let left = bytes
  const more = () => {
    while (left > 0) {
      const piece = CHUNK.subarray(0, Math.min(left, CHUNK.length))
      left -= piece.length
      if (!stream.write(piece)) return
    }
  }
  stream.on('drain', more)
  more()
}

const quiet = <T extends NodeJS.EventEmitter>(emitter: T): T => emitter.on('error', () => undefined)

/** Opens TCP connections; each sends `text`, then `then(socket)`. */
const overTcp =
  (text: string | Buffer, then: (socket: Socket) => unknown = () => undefined): Open =>
  ({ port, address }) => {
    const socket = quiet(connect({ port, host: '127.0.0.1', localAddress: address }))
    socket.on('connect', () => {
      socket.write(text)
      then(socket)
    })
    return () => socket.destroy()
  }

function connectOverTls({ port, address, ca }: Place): TLSSocket {
  const to = { port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2'] }
  return connectTls({ ...to, ...{ localAddress: address }, ...(ca === undefined ? {} : { ca }) })
}

/** Opens TLS connections for HTTP/2; each is given to `then`. */
const overTls =
  (then: (socket: TLSSocket) => unknown): Open =>
  place => {
    const socket = quiet(connectOverTls(place))
    socket.once('secureConnect', () => then(socket))
    return () => socket.destroy()
  }

/** One HTTP/2 connection with `streams` requests at a time, each given to `each`. */
const overHttp2 =
  (
    streams: number,
    head: OutgoingHttpHeaders,
    each: (stream: ClientHttp2Stream) => unknown,
    settings: Settings = {},
  ): Open =>
  place => {
    const createConnection = () => connectOverTls(place)
    const options = { createConnection, settings, maxSessionMemory: 1000 }
    const session = quiet(connectHttp2(`https://localhost:${place.port}`, options))
    session.on('connect', () => {
      for (let i = 0; i < streams && !session.destroyed; i++) {
        each(quiet(session.request({ ':authority': HOST, ...head }, { endStream: false })))
      }
    })
    return () => session.destroy()
  }

const post = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`
const post2 = (path: string, length: number) => ({
  ':method': 'POST',
  ':path': path,
  'content-type': 'application/x-www-form-urlencoded',
  'content-length': String(length),
})
/** As large as a head may be, with as many fields as a request may have that counts once. */
const LARGE_HEAD = Object.fromEntries(Array.from({ length: 26 }, (_, n) => [`x-${n}`, 'a'.repeat(580)]))
/** The same over HTTP/1.1, with as many fields as a request may have. */
const LARGE_LINES = `Host: ${HOST}\r\n${`a: ${'b'.repeat(95)}\r\n`.repeat(157)}`
const TRAILERS = `b: ${'b'.repeat(240)}\r\n`.repeat(64)
const TINY_CHUNKS = '1\r\na\r\n'.repeat(40_000)
const ALL_LARGE = Buffer.alloc(13 * MIB, 'a')
const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`

/** Several upstreams, since the places of one are limited. */
const overUpstreams =
  (open: (app: string) => Open): Open =>
  place =>
    open(UPSTREAMS[place.n % UPSTREAMS.length] as string)(place)

export const KINDS: Record<string, Kind> = {
  'TLS handshake': { tls: true, open: overTcp(HALF_HANDSHAKE) },
  'idle connection over TLS': {
    tls: true,
    open: overTls(socket => socket.write(OPENING)),
  },
  'request head': {
    open: overTcp(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n${`x-a: ${'a'.repeat(990)}\r\n`.repeat(31)}`),
  },
  'request with many fields': {
    open: overUpstreams(app => overTcp(`GET /${app}/deaf HTTP/1.1\r\n${LARGE_LINES}\r\n`)),
  },
  'request with many fields and trailers': {
    open: overUpstreams(app =>
      overTcp(
        `POST /${app}/deaf HTTP/1.1\r\n${LARGE_LINES}Transfer-Encoding: chunked\r\n\r\n0\r\n${TRAILERS}\r\n`,
      ),
    ),
  },
  'requests behind one that waits': {
    open: overUpstreams(app =>
      overTcp(
        `GET /${app}/deaf HTTP/1.1\r\n${LARGE_LINES}\r\n`,
        // So many that they count, from every second client.
        socket =>
          socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(Number(socket.localPort) % 2 ? 280 : 4000)),
      ),
    ),
  },
  'request head, HTTP/2': { tls: true, open: overTls(socket => socket.write(halfHead(HOST))) },
  'request with a large head, HTTP/2': {
    tls: true,
    open: overUpstreams(app =>
      overHttp2(4, { ':path': `/${app}/deaf`, ...LARGE_HEAD }, stream => stream.end()),
    ),
  },
  'body to an embedded service': {
    open: overTcp(post('/self-service/registration', MIB), socket => fill(socket, MIB - 1)),
  },
  'body to an embedded service, HTTP/2': {
    tls: true,
    open: overHttp2(100, post2('/self-service/registration', MIB), stream => fill(stream, MIB - 1)),
  },
  'body to an upstream that does not read': {
    open: overUpstreams(app => overTcp(post(`/${app}/deaf`, 100 * MIB), socket => fill(socket, 13 * MIB))),
  },
  'tiny chunks to an upstream that does not read': {
    lastsMs: TINY_MS,
    connections: 400,
    open: overUpstreams(app =>
      overTcp(`POST /${app}/deaf HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n`, socket => {
        for (const piece of [`${ALL_LARGE.length.toString(16)}\r\n`, ALL_LARGE, '\r\n']) socket.write(piece)
        socket.write(TINY_CHUNKS)
      }),
    ),
  },
  'tiny frames to an upstream that does not read, HTTP/2': {
    tls: true,
    lastsMs: TINY_MS,
    connections: 190,
    open: overUpstreams(app => overTls(socket => sendTinyFrames(socket, HOST, `/${app}/deaf`))),
  },
  'body to an upstream that does not read, HTTP/2': {
    tls: true,
    open: overUpstreams(app =>
      overHttp2(100, post2(`/${app}/deaf`, 100 * MIB), stream => fill(stream, 2 * MIB)),
    ),
  },
  'body whose e-mail address is looked for, HTTP/2': {
    tls: true,
    open: overHttp2(100, post2('/app/mail', 65_000), stream => fill(stream, 64_000)),
  },
  'answer not read': {
    open: overUpstreams(app =>
      overTcp(`GET /${app}/large HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, socket => socket.pause()),
    ),
  },
  'answer not read, HTTP/2': {
    tls: true,
    open: overUpstreams(app =>
      overHttp2(100, { ':path': `/${app}/large` }, stream => stream.end().pause(), { initialWindowSize: 0 }),
    ),
  },
  'WebSocket that the upstream does not accept': { open: overTcp(upgrade('/app/deaf')) },
  'WebSocket not read': { open: overTcp(upgrade('/app/socket'), socket => socket.pause()) },
}
