/** HTTP/2 from clients (RFC 9113): every stream is a request like any other; what a session may cost is bounded. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { continueWhenWanted } from './expect.js'
import { HEAD_TIMEOUT_MS, KEEP_ALIVE_MS, REQUEST_TIMEOUT_MS } from './limits.js'
import { StreamRequest } from './stream-request.js'
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
  request(req: IncomingMessage, res: ServerResponse): void
  failed?(error: unknown): void
}

export interface Http2Listener {
  /** Takes a connection on which HTTP/2 was agreed. */
  accept(socket: TLSSocket): void
  /** Takes no new requests, on any connection; each ends with its last request. */
  drain(): void
}

export function createHttp2Listener(handlers: StreamHandlers): Http2Listener {
  const sessions = new Set<ServerHttp2Session>()
  let draining = false

  return {
    accept(socket) {
      const session = performServerHandshake(socket, OPTIONS)
      sessions.add(session)
      session.on('close', () => sessions.delete(session))
      // The client's fault or the network's: its streams are told, and nobody else is concerned.
      session.on('error', () => {})
      attend(session, socket)
      if (draining) session.close()
    },
    drain() {
      draining = true
      for (const session of sessions) session.close()
    },
  }

  function attend(session: ServerHttp2Session, socket: TLSSocket): void {
    const spend = allowance(() => {
      session.destroy(new Error('too many idle frames'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
    })
    let open = 0
    session.setTimeout(HEAD_TIMEOUT_MS, () => session.close())
    session.on('ping', spend)
    session.on('remoteSettings', spend)
    session.on(
      'stream',
      (stream: ServerHttp2Stream, joined: IncomingHttpHeaders, _flags: number, raw: string[]) => {
        // Reset in the same breath: nobody waits for an answer.
        if (stream.closed || stream.destroyed) return spend()
        open++
        session.setTimeout(0)
        const res = serve(stream, new StreamRequest(stream, socket, joined, raw))
        stream.on('close', () => {
          open--
          if (open === 0 && !session.destroyed) session.setTimeout(KEEP_ALIVE_MS)
          if (res.clientLeft) spend()
        })
      },
    )
  }

  function serve(stream: ServerHttp2Stream, req: StreamRequest): StreamResponse {
    const res = new StreamResponse(stream, req)
    if (!req.complete) limitUpload(req, res)
    continueWhenWanted(req, res)
    try {
      handlers.request(req, res.asServerResponse())
    } catch (error) {
      res.destroy()
      handlers.failed?.(error)
    }
    return res
  }
}

function limitUpload(req: StreamRequest, res: StreamResponse): void {
  const timer = setTimeout(() => res.destroy(), REQUEST_TIMEOUT_MS)
  req.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
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
