/** An upstream that writes its responses byte for byte: what clients get does not depend on an HTTP library. */
import { createHash } from 'node:crypto'
import { createServer as createPlain, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { gzipSync } from 'node:zlib'
import type { Scope } from '../../test/helpers/scope.js'
import { listening, type Place } from './judge.js'
import { type ReadRequest, readRequests } from './requests.js'

/**
 * Not echoed, so that responses can be compared: fields that proxies add, connection fields, Referer and Origin (which name
 * the port), and Priority (RFC 9218), which Chromium sends over HTTP/2 alone.
 */
const NOT_ECHOED =
  /^(via|forwarded|x-forwarded-.*|x-sluice-.*|host|connection|upgrade|http2-settings|te|expect|keep-alive|transfer-encoding|content-length|referer|origin|priority)$/

const TEXT = 'All that is gold does not glitter.\n'
export const BIG_BYTES = 4 * 1024 * 1024
const BIG = Buffer.alloc(BIG_BYTES, '0123456789abcdef')
const GZIPPED = gzipSync(TEXT.repeat(50))

const DATE = 'Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n'
const head = (status: string, fields = ''): string => `HTTP/1.1 ${status}\r\n${DATE}${fields}`
const sized = (status: string, body: string | Buffer, fields = ''): [string, string | Buffer] => [
  `${head(status, fields)}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
  body,
]
const chunk = (data: string): string => `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`

type Piece = string | Buffer | null

/** By path: the pieces of the response; a final `null` ends the connection. */
const ANSWERS: Record<string, (request: ReadRequest) => [string, ...Piece[]]> = {
  '/length': () => sized('200 OK', TEXT, 'Content-Type: text/plain\r\nETag: "a"\r\n'),
  '/chunked': () => [
    `${head('200 OK')}Transfer-Encoding: chunked\r\n\r\n${chunk('one ')}`,
    chunk('two ') + chunk('three'),
    '0\r\n\r\n',
  ],
  '/close': () => [`${head('200 OK')}Connection: close\r\n\r\n`, TEXT, null],
  '/empty': () => [`${head('204 No Content', 'X-Empty: yes\r\n')}\r\n`],
  '/not-modified': () => [`${head('304 Not Modified', 'ETag: "a"\r\nContent-Length: 35\r\n')}\r\n`],
  '/gzip': () => sized('200 OK', GZIPPED, 'Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n'),
  '/trailers': () => [
    `${head('200 OK', 'Trailer: X-Sum\r\n')}Transfer-Encoding: chunked\r\n\r\n`,
    `${chunk('summed')}0\r\nX-Sum: 42\r\n\r\n`,
  ],
  '/redirect': () => sized('302 Found', 'elsewhere', 'Location: /length\r\n'),
  '/redirect-with-body': () => sized('307 Temporary Redirect', '', 'Location: /echo\r\n'),
  '/range': () => sized('206 Partial Content', TEXT.slice(2, 6), 'Content-Range: bytes 2-5/35\r\n'),
  '/cookies': () => sized('200 OK', 'two', 'Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2, x; Path=/\r\n'),
  '/early-hints': () => [
    'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n',
    ...sized('200 OK', 'hinted'),
  ],
  '/error': () => sized('503 Service Unavailable', 'later', 'Retry-After: 7\r\n'),
  '/unknown-status': () => sized('299 Strange', 'strange'),
  '/no-length': () => [`${head('200 OK', 'Content-Length: 0\r\n')}\r\n`],
  '/big': () => sized('200 OK', BIG),
  '/echo': request => sized('200 OK', echo(request), 'Content-Type: application/json\r\n'),
}

/** Listens on a free port of 127.0.0.1, to which it resolves; with `tls`, HTTP/1.1 over TLS. */
export async function startUpstream(t: Scope, tls?: Place): Promise<number> {
  const server = tls ? createTls({ ...tls, ALPNProtocols: ['http/1.1'] }) : createPlain()
  const open = new Set<Socket>()
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    readRequests(socket, request => answer(socket, request))
  })
  t.teardown(() => {
    for (const socket of open) socket.destroy()
  })
  return listening(t, server)
}

function answer(socket: Socket, request: ReadRequest): void {
  const [path = ''] = request.target.split('?')
  const pieces = ANSWERS[path]?.(request) ?? sized('404 Not Found', '')
  for (const piece of request.method === 'HEAD' ? headOf(pieces) : pieces) {
    if (piece === null) socket.end()
    else socket.write(piece)
  }
  if (request.isLast) socket.end()
}

const headOf = ([first]: [string, ...Piece[]]): Piece[] => [first.slice(0, first.indexOf('\r\n\r\n') + 4)]

/** What arrived, in a form that does not depend on how the request was framed. */
function echo({ method, target, fields, body }: ReadRequest): string {
  const seen = fields.filter(([name]) => !NOT_ECHOED.test(name)).sort()
  const sum = createHash('sha256').update(body).digest('hex')
  return JSON.stringify({ method, target, fields: seen, bytes: body.length, sum })
}
