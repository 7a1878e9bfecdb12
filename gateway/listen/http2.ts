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
import { allowance, ResetsByClient } from './idle-frames.js'
import { KEEP_ALIVE_MS, REQUEST_TIMEOUT_MS } from './limits.js'
import { SessionWatch, type WatchedSession } from './session-watch.js'
import { StreamBody } from './stream-body.js'
import { requestOfStream } from './stream-request.js'
import { StreamResponse } from './stream-response.js'

/** For a frame that says why, before the connection is cut. */
const FAREWELL_MS = 20
/** Beyond MAX_HEAD a head is still read, so that it can be answered; beyond this Node resets its stream. */
const MAX_HEAD_LIST = 64 * 1024

const OPTIONS = {
  settings: { maxConcurrentStreams: 100, maxHeaderListSize: MAX_HEAD_LIST },
  maxHeaderListPairs: 1_000,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // Resets are bounded in idle-frames.ts. nghttp2's own bound, 33 a second, also counts those that follow an answer, and
  // clients on Node's http2 may send one for every answer. Node 20 has no setting for it.
  streamResetBurst: 1_000_000,
  streamResetRate: 1_000_000,
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

/**
 * A connection has `headTimeoutMs` to send a first request. `clientOf` says whose an address is; undefined for a proxy's, which
 * brings many clients.
 */
export function createHttp2Listener(
  handlers: StreamHandlers,
  headTimeoutMs: number,
  clientOf: (address: string) => string | undefined,
): Http2Listener {
  /** Each ends with its last request. */
  const endings = new Set<() => void>()
  const watch = new SessionWatch()
  const resets = new ResetsByClient()
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
    const end = () => {
      session.close()
      if (open === 0) cutSoon()
    }
    // A timer of our own: Node leaves the session's running when it is destroyed, which keeps all it held (closeSession).
    let idle: NodeJS.Timeout | undefined
    const endWhenIdleFor = (ms: number) => {
      idle = setTimeout(end, ms).unref()
    }
    endWhenIdleFor(headTimeoutMs)
    // Its socket ends it: a session that is destroyed while streams have data to send may keep Node writing empty frames
    // without end (nodejs/node#52952).
    const calm = () => {
      if (session.destroyed) return
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      setTimeout(() => socket.destroy(), FAREWELL_MS)
    }
    const spend = allowance(calm)
    const client = clientOf(peer.address)
    const takeBack = () => {
      if (client === undefined || resets.spend(client)) spend()
      else calm()
    }
    const watched = watch.add(session, socket, { gone: () => socket.destroy(), floods: calm })
    socket.once('close', () => {
      clearTimeout(goodbye)
      clearTimeout(idle)
      watch.remove(watched)
    })
    session.on('goaway', end)
    session.on('ping', () => {
      idle?.refresh()
      spend()
    })
    session.on('remoteSettings', spend)
    session.on(
      'stream',
      (stream: ServerHttp2Stream, joined: IncomingHttpHeaders, _flags: number, raw: string[]) => {
        // Who has left needs no answer. Here already: a reset that comes with its request is told, too, and must not go unheard.
        stream.on('error', () => {})
        // Reset in the same breath: nobody waits for an answer.
        if (stream.closed || stream.destroyed) return takeBack()
        open++
        watched.onRequest()
        clearTimeout(idle)
        idle = undefined
        const res = serve(stream, joined, raw, peer, watched)
        stream.on('close', () => {
          open--
          if (open === 0 && session.closed) cutSoon()
          else if (open === 0 && !session.destroyed) endWhenIdleFor(KEEP_ALIVE_MS)
          if (res.clientLeft) takeBack()
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
    watched: WatchedSession,
  ): StreamResponse {
    const body = stream.endAfterHeaders
      ? undefined
      : new StreamBody(stream, joined['content-length'], {
          wanted() {
            if (joined.expect?.toLowerCase() === '100-continue') res.sendContinue()
          },
          received: bytes => watched.onUpload(bytes),
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
