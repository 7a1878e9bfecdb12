import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ErrorCode, problem } from '../errors.js'

/** Bytes of a request head; also bounds the target and the number of fields. */
const MAX_HEAD = 16 * 1024
const HEAD_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 300_000
/** Longer than the usual 60 s of load balancers, so that they, not we, close an idle connection. */
const KEEP_ALIVE_MS = 65_000
const SWEEP_MS = 1_000

type Fields = OutgoingHttpHeaders | OutgoingHttpHeader[]

export interface Handlers {
  request(req: IncomingMessage, res: ServerResponse): void
  /** Every request that asks for an upgrade; `socket` already has an error listener. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
}

export interface Listener {
  /** Resolves to the address really listened on; port 0 takes a free one. */
  start(host: string, port: number): Promise<{ host: string; port: number }>
  /** Accepts nothing more, lets requests finish, and cuts what is left after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>
}

/** The data port: a strict HTTP/1.1 server that refuses by itself what is not HTTP. */
export function createListener(handlers: Handlers): Listener {
  let draining = false
  const answering = new WeakMap<Duplex, ServerResponse>()
  const upgraded = new Set<Duplex>()

  class Answer extends ServerResponse {
    override assignSocket(socket: Socket): void {
      super.assignSocket(socket)
      answering.set(socket, this)
    }

    override writeHead(status: number, reason?: string | Fields, fields?: Fields): this {
      if (draining) this.shouldKeepAlive = false
      return super.writeHead(status, reason as string, fields)
    }
  }

  const server = createServer({
    ServerResponse: Answer,
    maxHeaderSize: MAX_HEAD,
    headersTimeout: HEAD_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: SWEEP_MS,
    insecureHTTPParser: false,
    // Checked with the rest of the framing, where the answer has a body that explains it.
    requireHostHeader: false,
  })
  // With any other value Node hides fields from us by which it still frames the message (CVE-2026-58044).
  server.maxHeadersCount = 0

  server.on('request', handlers.request)
  server.on('upgrade', (req, socket, head) => {
    upgraded.add(socket)
    socket.on('close', () => upgraded.delete(socket))
    socket.on('error', () => socket.destroy())
    handlers.upgrade(req, socket, head)
  })
  server.on('connect', (_req, socket) => {
    socket.on('error', () => socket.destroy())
    socket.end(rawAnswer('method-not-allowed'))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // An answer that has begun is cut: a second status line inside its body would be read as part of it.
    if (!socket.writable || answering.get(socket)?.headersSent) socket.destroy()
    else socket.end(rawAnswer(codeOf(error)), () => socket.destroy())
  })

  return {
    start(host, port) {
      return new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          const address = server.address() as AddressInfo
          resolve({ host: address.address, port: address.port })
        })
      })
    },
    drain(deadlineMs) {
      draining = true
      return new Promise(resolve => {
        const deadline = setTimeout(() => {
          server.closeAllConnections()
          for (const socket of upgraded) socket.destroy()
        }, deadlineMs)
        server.close(() => {
          clearTimeout(deadline)
          resolve()
        })
      })
    },
  }
}

function codeOf(error: NodeJS.ErrnoException): ErrorCode {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'header-too-large'
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request-timeout'
  return 'bad-request'
}

/** The bytes of a problem answer where Node offers no response object. */
function rawAnswer(code: ErrorCode): string {
  const { status, title, ...rest } = problem(code, randomUUID())
  const body = JSON.stringify({ status, title, ...rest })
  return [
    `HTTP/1.1 ${status} ${title}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 405 ? ['Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'] : []),
    'Cache-Control: no-store',
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
