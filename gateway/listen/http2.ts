/** HTTP/2 from clients (RFC 9113): every stream is a request like any other; what a session may cost is bounded. */
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
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
/** For the last frames of a connection. */
const GOODBYE_MS = 2_000

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
  const sessions = new Set<ServerHttp2Session>()
  let draining = false

  return {
    accept(socket, fingerprints) {
      const session = performServerHandshake(socket, OPTIONS)
      sessions.add(session)
      session.on('close', () => sessions.delete(session))
      // The client's fault or the network's: its streams are told, and nobody else is concerned.
      session.on('error', () => {})
      attend(session, socket, {
        address: socket.remoteAddress ?? '',
        localPort: socket.localPort ?? 0,
        encrypted: true,
        fingerprints,
      })
      if (draining) session.close()
    },
    drain() {
      draining = true
      for (const session of sessions) session.close()
    },
  }

  function attend(session: ServerHttp2Session, socket: TLSSocket, peer: Peer): void {
    const spend = allowance(() => {
      session.destroy(new Error('too many idle frames'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
    })
    let open = 0
    session.setTimeout(headTimeoutMs, () => {
      session.close()
      // Node waits until all has left, which may be never: of a client that is gone it need not have heard.
      setTimeout(() => socket.destroy(), GOODBYE_MS).unref()
    })
    session.on('ping', spend)
    session.on('remoteSettings', spend)
    session.on(
      'stream',
      (stream: ServerHttp2Stream, joined: IncomingHttpHeaders, _flags: number, raw: string[]) => {
        // Reset in the same breath: nobody waits for an answer.
        if (stream.closed || stream.destroyed) return spend()
        open++
        session.setTimeout(0)
        const res = serve(stream, joined, raw, peer)
        stream.on('close', () => {
          open--
          if (open === 0 && !session.destroyed) session.setTimeout(KEEP_ALIVE_MS)
          if (res.clientLeft) spend()
        })
      },
    )
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
