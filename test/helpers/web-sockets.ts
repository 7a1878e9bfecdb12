/** WebSockets for tests: an upstream that keeps what it gets, clients, and frames by hand. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { type RawPeer, rawClient } from './raw.js'
import { waitUntil } from './wait.js'

const LIMIT_MS = 5_000

export interface Upstream {
  readonly url: string
  readonly server: WebSocketServer
  /** Every message so far, of all WebSockets. */
  readonly messages: string[]
  /** The status with which each WebSocket was closed; 1006 without a Close frame. */
  readonly closed: number[]
}

/** Keeps every message; with `echo`, sends it back as well. */
export async function webSocketUpstream(t: Test, { echo = false } = {}): Promise<Upstream> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const upstream: Upstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    messages: [],
    closed: [],
  }
  server.on('connection', socket => {
    socket.on('error', () => {})
    socket.on('message', (data, binary) => {
      upstream.messages.push(String(data))
      if (echo) socket.send(data, { binary })
    })
    socket.on('close', status => upstream.closed.push(status))
  })
  t.teardown(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  return upstream
}

/** An open WebSocket of project acme, or of `host`. */
export async function openSocket(
  t: Test,
  url: string,
  { path = '/chat', host = 'acme.localhost', headers = {} } = {},
): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${path}`, { headers: { host, ...headers } })
  socket.on('error', () => {})
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

/** Resolves to status and reason of the Close frame, and how many ms it took. */
export async function closeOf(socket: WebSocket): Promise<{ status: number; reason: string; ms: number }> {
  const since = performance.now()
  const [status, reason] = await once(socket, 'close')
  return { status, reason: String(reason), ms: performance.now() - since }
}

/** A client that writes bytes, after the answer to its handshake. */
export async function rawWebSocket(t: Test, url: string, path = '/chat'): Promise<RawPeer> {
  const peer = await rawClient(Number(new URL(url).port))
  t.teardown(() => peer.socket.destroy())
  peer.send(
    `GET ${path} HTTP/1.1\r\nHost: acme.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
  )
  const { line } = await peer.head()
  if (!line.includes(' 101 ')) throw new Error(`the WebSocket was refused: ${line}`)
  return peer
}

/** The status in the Close frame that a raw client has received, as the only thing. */
export async function rawClose(peer: RawPeer): Promise<number> {
  await waitUntil('the end of the WebSocket', () => peer.ended || peer.closed, LIMIT_MS)
  const bytes = Buffer.from(peer.unread, 'latin1')
  return bytes[0] === 0x88 ? bytes.readUInt16BE(2) : 0
}

export const TEXT = 1
export const BINARY = 2
export const CONTINUATION = 0
export const CLOSE = 8
export const PING = 9

interface FrameOptions {
  readonly final?: boolean
  readonly masked?: boolean
  /** Bits for extensions, such as 0x40 for a compressed message. */
  readonly bits?: number
}

/** One frame of a client. */
export function frame(
  opcode: number,
  payload: string | Buffer = '',
  { final = true, masked = true, bits = 0 }: FrameOptions = {},
): Buffer {
  const content = Buffer.from(payload)
  const { length } = content
  const extended = Buffer.alloc(length < 126 ? 0 : length < 65_536 ? 2 : 8)
  if (extended.length === 2) extended.writeUInt16BE(length)
  if (extended.length === 8) extended.writeBigUInt64BE(BigInt(length))
  const marker = length < 126 ? length : length < 65_536 ? 126 : 127
  const head = Buffer.from([(final ? 0x80 : 0) | bits | opcode, (masked ? 0x80 : 0) | marker])
  if (!masked) return Buffer.concat([head, extended, content])
  const mask = Buffer.from([1, 2, 3, 4])
  return Buffer.concat([head, extended, mask, content.map((byte, i) => byte ^ (mask[i % 4] as number))])
}
