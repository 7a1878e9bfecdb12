/** HTTP/2 from clients (RFC 9113): every stream is a request like any other; what a session may cost is bounded. */
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { GOODBYE_MS } from '../http1/lingering-close.js'
import type { Fingerprints, IncomingRequest, OutgoingResponse, Peer } from '../message.js'
import { KEEP_ALIVE_MS, REQUEST_TIMEOUT_MS } from './limits.js'
import { StreamBody } from './stream-body.js'
import { requestOfStream } from './stream-request.js'
import { StreamResponse } from './stream-response.js'

/** Beyond MAX_HEAD a head is still read, so that it can be answered; beyond this Node resets its stream. */
const MAX_HEAD_LIST = 64 * 1024
/** What a client may do for nothing, per window: resets of its requests, pings, settings (CVE-2023-44487 and kin). */
const MAX_IDLE_FRAMES = 200
const WINDOW_MS = 10_000

const OPTIONS = {
  settings: { maxConcurrentStreams: 100, maxHeaderListSize: MAX_HEAD_LIST },
  maxHeaderListPairs: 1_000,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
}

export interface StreamHandlers {
  request(req: IncomingRequest, res: OutgoingResponse): void
  failed?(error: unknown): void
}

export interface Http2Listener {
  /** Takes a connection on which HTTP/2 was agreed. */
  accept(socket: TLSSocket, fingerprints: Fingerprints | undefined): void
  /** Takes no new requests, on any connection; each ends with its last request. */
  drain(): void
}

/** A connection has `headTimeoutMs` to send a first request. */
export function createHttp2Listener(handlers: StreamHandlers, headTimeoutMs: number): Http2Listener {
  /** Each ends with its last request. */
  const endings = new Set<() => void>()
  let draining = false

  return {
    accept(socket, fingerprints) {
      const session = performServerHandshake(socket, OPTIONS)
      // The client's fault or the network's: its streams are told, and nobody else is concerned.
      session.on('error', () => {})
      const peer = {
        address: socket.remoteAddress ?? '',
        localPort: socket.localPort ?? 0,
        encrypted: true,
        fingerprints,
      }
      const end = attend(session, socket, peer)
      endings.add(end)
      socket.once('close', () => endings.delete(end))
      if (draining) end()
    },
    drain() {
      draining = true
      for (const end of endings) end()
    },
  }

  /** Returns what ends the session with its last request. */
  function attend(session: ServerHttp2Session, socket: TLSSocket, peer: Peer): () => void {
    let open = 0
    let goodbye: NodeJS.Timeout | undefined
    // Node waits for the client to end its side, too, and for as long as it likes.
    const cutSoon = () => {
      goodbye ??= setTimeout(() => socket.destroy(), GOODBYE_MS)
    }
    socket.once('close', () => clearTimeout(goodbye))
    const end = () => {
      session.close()
      if (open === 0) cutSoon()
    }
    const spend = allowance(() => {
      session.destroy(new Error('too many idle frames'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
      cutSoon()
    })
    session.setTimeout(headTimeoutMs, end)
    session.on('goaway', end)
    session.on('ping', spend)
    session.on('remoteSettings', spend)
    session.on(
      'stream',
      (stream: ServerHttp2Stream, joined: IncomingHttpHeaders, _flags: number, raw: string[]) => {
        // Who has left needs no answer. Here already: a reset that comes with its request is told, too, and must not go unheard.
        stream.on('error', () => {})
        // Reset in the same breath: nobody waits for an answer.
        if (stream.closed || stream.destroyed) return spend()
        open++
        session.setTimeout(0)
        const res = serve(stream, joined, raw, peer)
        stream.on('close', () => {
          open--
          if (open === 0 && session.closed) cutSoon()
          else if (open === 0 && !session.destroyed) session.setTimeout(KEEP_ALIVE_MS)
          if (res.clientLeft) spend()
        })
      },
    )
    return end
  }

  function serve(
    stream: ServerHttp2Stream,
    joined: IncomingHttpHeaders,
    raw: readonly string[],
    peer: Peer,
  ): StreamResponse {
    const body = stream.endAfterHeaders
      ? undefined
      : new StreamBody(stream, joined['content-length'], () => {
          if (joined.expect?.toLowerCase() === '100-continue') res.sendContinue()
        })
    const req = requestOfStream(joined, raw, peer, body)
    const res = new StreamResponse(stream, req)
    if (body !== undefined) limitUpload(stream, res)
    try {
      handlers.request(req, res)
    } catch (error) {
      res.cut()
      handlers.failed?.(error)
    }
    return res
  }
}

function limitUpload(stream: ServerHttp2Stream, res: StreamResponse): void {
  const timer = setTimeout(() => res.cut(), REQUEST_TIMEOUT_MS)
  stream.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
}

/** Counts; calls `exhausted` when there was more than a window allows. */
function allowance(exhausted: () => void): () => void {
  let count = 0
  let windowEnds = 0
  return () => {
    const now = performance.now()
    if (now > windowEnds) {
      windowEnds = now + WINDOW_MS
      count = 0
    }
    count++
    if (count > MAX_IDLE_FRAMES) exhausted()
  }
}
