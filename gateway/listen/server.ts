import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../errors.js'
import { createDoor, type DoorSettings } from './connection-cap.js'
import { continueWhenWanted } from './expect.js'
import { asksForWebSocket } from './framing.js'
import type { ParserError } from './head-size.js'
import { createHttp2Listener } from './http2.js'
import { HEAD_TIMEOUT_MS, KEEP_ALIVE_MS, MAX_HEAD_READ, REQUEST_TIMEOUT_MS } from './limits.js'
import {
  codeOfParserError,
  hasBody,
  lastAnswerMayComeEarly,
  rawAnswer,
  sayGoodbye,
} from './lingering-close.js'
import { answerUnderWay, awaitTurn, endTurn, TurnResponse } from './pipelining.js'
import { createTlsFront, type TlsSettings } from './tls.js'
import { WaitingConnections } from './waiting.js'

const SWEEP_MS = 1_000

type Fields = OutgoingHttpHeaders | OutgoingHttpHeader[]

export interface Handlers {
  request(req: IncomingMessage, res: ServerResponse): void
  /**
   * Every request that asks for an upgrade. A refusal goes through `res`, after which the listener ends the
   * connection; whoever writes to `socket` instead owns its end. `socket` already has an error listener.
   */
  upgrade(req: IncomingMessage, res: ServerResponse, socket: Duplex, head: Buffer): void
  /** An answer was given before there was a request: what was sent is not HTTP, or CONNECT. */
  refused?(code: ErrorCode): void
  /** A handler threw; the connection of its request is cut. */
  failed?(error: unknown): void
}

export interface Listener {
  /** Resolves to the address really listened on; port 0 takes a free one. */
  start(host: string, port: number): Promise<{ host: string; port: number }>
  /** Accepts nothing more, lets requests finish, and cuts what is left after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>
  /** Clients' connections that are open. */
  readonly connections: number
  /** Reads the certificate's files again: new connections get what they hold, the others live on. */
  reloadCertificate(): void
}

/** The data port: a strict HTTP server that refuses by itself what is not HTTP. With `tls` it takes nothing else. */
export function createListener(handlers: Handlers, limits: DoorSettings, tls?: TlsSettings): Listener {
  let draining = false
  const waiting = new WaitingConnections()
  const upgraded = new Set<Duplex>()
  const broken = new WeakSet<Duplex>()
  /** Connections whose last answer has begun. */
  const closing = new WeakSet<Duplex>()
  /** Connections whose requests begin in their turn alone. */
  const orderly = new WeakSet<Duplex>()

  class Response extends TurnResponse {
    override assignSocket(socket: Socket): void {
      waiting.busy(socket)
      super.assignSocket(socket)
    }

    override detachSocket(socket: Socket): void {
      super.detachSocket(socket)
      waiting.idle(socket)
      if (draining) process.nextTick(() => waiting.closeIdle())
    }

    override writeHead(status: number, reason?: string | Fields, fields?: Fields): this {
      const flat = Array.isArray(reason) ? reason : fields
      // Of ours, and `close`: an upstream's own says nothing about this connection and does not pass.
      const isLast = Array.isArray(flat) && flat.includes('Connection')
      if (draining || isLast) this.shouldKeepAlive = false
      super.writeHead(status, reason as string, fields)
      if (!this.shouldKeepAlive) closing.add(this.req.socket)
      return this
    }
  }

  const options = {
    ServerResponse: Response,
    maxHeaderSize: MAX_HEAD_READ,
    headersTimeout: HEAD_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: SWEEP_MS,
    insecureHTTPParser: false,
    // Checked with the rest of the framing, where the answer has a body that explains it.
    requireHostHeader: false,
    // Where Node knows this option, what asks for another protocol, such as h2c, is served as if it had not (RFC 9110
    // section 7.8). Older Node hands over the socket of every upgrade, and such a request is answered 400.
    shouldUpgradeCallback: asksForWebSocket,
  }
  const server = createServer(options)
  // With any other value Node hides fields from us by which it still frames the message (CVE-2026-58044).
  server.maxHeadersCount = 0

  const http2 = createHttp2Listener(handlers)
  const front =
    tls &&
    createTlsFront(tls, {
      http1: socket => server.emit('connection', socket),
      http2: socket => http2.accept(socket),
      refused: code => handlers.refused?.(code),
    })
  const door = createDoor(limits, tls !== undefined, {
    enter: socket => (front === undefined ? server.emit('connection', socket) : front.accept(socket)),
    makeRoom: () => waiting.closeLongest(),
    refused: code => handlers.refused?.(code),
  })
  // A server that does not listen itself begins its sweep for slow requests when it is told that it does.
  door.server.on('listening', () => server.emit('listening'))

  server.on('connection', socket => waiting.opened(socket))
  for (const event of ['request', 'checkExpectation']) {
    server.on(event, (req: IncomingMessage, res: Response) => take(req, res, () => serve(req, res)))
  }
  server.on('checkContinue', (req, res) => {
    // Node puts an answer's head before the 100 that waits with it.
    orderly.add(req.socket)
    take(req, res, () => {
      if (hasBody(req)) continueWhenWanted(req, res)
      // There is nothing to ask for, but Node would close after an answer that no 100 came before.
      else res.writeContinue()
      serve(req, res)
    })
  })
  server.on('upgrade', (req, socket, head) => {
    if (!takeOver(socket)) return
    const res = new Response(req)
    res.shouldKeepAlive = false
    res.assignSocket(socket as Socket)
    res.on('finish', () => sayGoodbye(socket))
    try {
      handlers.upgrade(req, res, socket, head)
    } catch (error) {
      fail(socket, error)
    }
  })
  server.on('connect', (_req, socket) => {
    if (takeOver(socket)) refuse(socket, 'method-not-allowed')
  })
  server.on('clientError', (error: ParserError, socket) => {
    if (broken.has(socket)) return
    broken.add(socket)
    refuse(socket, codeOfParserError(error))
  })

  /**
   * Begins a request, now or in its turn, unless it follows one that an announced close answers: that is not to be
   * acted on (RFC 9112 section 9.6), and behind ambiguous framing it need not be a request at all.
   */
  function take(req: IncomingMessage, res: Response, begin: () => void): void {
    if (closing.has(req.socket)) req.resume()
    else if (res.socket === null && orderly.has(req.socket)) res.once('socket', begin)
    else begin()
  }

  function serve(req: IncomingMessage, res: Response): void {
    if (res.socket === null) awaitTurn(req.socket, res)
    if (hasBody(req)) lastAnswerMayComeEarly(req, res)
    try {
      handlers.request(req, res)
    } catch (error) {
      fail(req.socket, error)
    }
  }

  /** Node lets go of a socket with an upgrade or CONNECT, even while an earlier request waits for its answer. */
  function takeOver(socket: Duplex): boolean {
    socket.on('error', () => socket.destroy())
    if (answerUnderWay(socket) !== undefined) {
      socket.destroy()
      return false
    }
    upgraded.add(socket)
    socket.on('close', () => upgraded.delete(socket))
    return true
  }

  function refuse(socket: Duplex, code: ErrorCode): void {
    const answer = answerUnderWay(socket)
    if (!socket.writable) socket.destroy()
    // An earlier request is still to be answered, and must not take this refusal for its answer.
    else if (answer?.req.complete) answer.once('close', () => refuse(socket, code))
    // A second status line inside an answer that has begun would be read as part of it.
    else if (answer?.headersSent) socket.destroy()
    else {
      endTurn(socket)
      handlers.refused?.(code)
      sayGoodbye(socket, rawAnswer(code))
    }
  }

  function fail(socket: Duplex, error: unknown): void {
    socket.destroy()
    handlers.failed?.(error)
  }

  return {
    start(host, port) {
      return new Promise((resolve, reject) => {
        door.server.once('error', reject)
        door.server.listen(port, host, () => {
          door.server.off('error', reject)
          const address = door.server.address() as AddressInfo
          resolve({ host: address.address, port: address.port })
        })
      })
    },
    drain(deadlineMs) {
      draining = true
      return new Promise(resolve => {
        const deadline = setTimeout(() => {
          server.closeAllConnections()
          front?.closeAllConnections()
          for (const socket of upgraded) socket.destroy()
        }, deadlineMs)
        door.server.close(() => {
          clearTimeout(deadline)
          // Stops its sweep for slow requests, which was still needed.
          server.close()
          resolve()
        })
        waiting.closeIdle()
        http2.drain()
      })
    },
    get connections() {
      return door.connections
    },
    reloadCertificate: () => front?.reloadCertificate(),
  }
}
