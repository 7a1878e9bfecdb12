/** HTTP/2 from clients by Node's implementation. Every stream is a request like any other; the cost of a session is limited. */
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { CLOSING_MS } from '../http1/lingering-close.js'
import type { Http2Handlers } from '../http2/server/connections.js'
import type { ClientLimits } from '../http2/server/streams.js'
import type { Flood, Peer } from '../message.js'
import type { Http2Listener } from './http2.js'
import { allowance } from './idle-frames.js'
import { KEEP_ALIVE_MS, MAX_FIELDS, REQUEST_TIMEOUT_MS } from './limits.js'
import { SessionWatch, type WatchedSession } from './session-watch.js'
import { StreamBody } from './stream-body.js'
import { requestOfStream } from './stream-request.js'
import { StreamResponse } from './stream-response.js'

/** Time for the GOAWAY frame to be sent before the connection is cut. */
const FAREWELL_MS = 20
/**
 * A head above MAX_HEAD is still read, so that it gets a response; beyond this, or MAX_FIELDS, Node resets its stream. Until
 * a head is whole, nghttp2 keeps it, with some 150 bytes more for each field, and nothing of it is seen here.
 */
const MAX_HEAD_LIST = 24 * 1024

const OPTIONS = {
  settings: { maxConcurrentStreams: 100, maxHeaderListSize: MAX_HEAD_LIST },
  maxHeaderListPairs: MAX_FIELDS,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // Resets are limited in idle-frames.ts. nghttp2's own limit, 33 a second, also counts resets that follow a response,
  // and clients on Node's http2 may send one for every response. Node 20 has no setting for it.
  streamResetBurst: 1_000_000,
  streamResetRate: 1_000_000,
}

/**
 * A connection has `headTimeout` to send a first request. `limitsAt` gives the limits of the client at an address.
 */
export function createNodeHttp2Listener(
  handlers: Http2Handlers,
  headTimeout: number,
  limitsAt: (address: string) => ClientLimits,
): Http2Listener {
  /** One function for each connection, which ends it with its last request. */
  const endings = new Set<() => void>()
  /** One function for each connection without a request, which closes it. The longest wait comes first. */
  const waiting = new Set<() => void>()
  const watch = new SessionWatch()
  let draining = false

  return {
    accept(socket, arrival) {
      const session = performServerHandshake(socket, OPTIONS)
      // Caused by the client or the network. The streams get their own events, so there is nothing else to do.
      session.on('error', () => {})
      const peer = {
        ...arrival,
        localPort: socket.localPort ?? 0,
        encrypted: true,
      }
      const end = attend(session, socket, peer)
      endings.add(end)
      socket.once('close', () => endings.delete(end))
      if (draining) end()
    },
    closeLongest() {
      const [close] = waiting
      close?.()
      return close !== undefined
    },
    // Its sockets are those of TLS, which are cut there.
    destroyAll() {},
    drain() {
      draining = true
      for (const end of endings) end()
    },
  }

  /** Returns a function that ends the session with its last request. */
  function attend(session: ServerHttp2Session, socket: Socket, peer: Peer): () => void {
    let open = 0
    let closing: NodeJS.Timeout | undefined
    // Node would wait without limit for the client to close its side.
    const cutSoon = () => {
      closing ??= setTimeout(() => socket.destroy(), CLOSING_MS)
    }
    const end = () => {
      session.close()
      if (open === 0) cutSoon()
    }
    // Not the session's own timeout: Node leaves it running after the session is destroyed, which leaks the session's
    // memory (closeSession).
    let idle: NodeJS.Timeout | undefined
    const waitFor = (ms: number) => {
      idle = setTimeout(end, ms).unref()
      waiting.add(closeIdle)
    }
    const stopWaiting = () => {
      clearTimeout(idle)
      idle = undefined
      waiting.delete(closeIdle)
    }
    // Destroys the socket, not the session: a session destroyed while streams have data to send may keep Node writing
    // empty frames for ever (nodejs/node#52952).
    let farewell: NodeJS.Timeout | undefined
    const leave = (code: number) => {
      if (session.destroyed || farewell !== undefined) return false
      session.goaway(code)
      farewell = setTimeout(() => socket.destroy(), FAREWELL_MS)
      return true
    }
    const calm = (flood: Flood) => {
      if (leave(constants.NGHTTP2_ENHANCE_YOUR_CALM)) handlers.flooded?.(flood)
    }
    const closeIdle = () => {
      stopWaiting()
      leave(constants.NGHTTP2_NO_ERROR)
    }
    waitFor(headTimeout)
    const count = allowance(calm)
    const client = limitsAt(peer.address)
    const takeBack = () => {
      if (client.carriesMany) return
      if (client.countReset()) count('resets')
      else calm('resets')
    }
    const watched = watch.add(session, socket, {
      gone: () => socket.destroy(),
      floods: () => calm('idle-frames'),
    })
    socket.once('close', () => {
      clearTimeout(closing)
      stopWaiting()
      watch.remove(watched)
    })
    session.on('goaway', end)
    session.on('ping', () => {
      idle?.refresh()
      count('pings')
    })
    session.on('remoteSettings', () => count('settings'))
    session.on(
      'stream',
      (stream: ServerHttp2Stream, joined: IncomingHttpHeaders, _flags: number, raw: string[]) => {
        // A client that has left needs no response. Added before the check below, because a stream that was reset
        // together with its request emits an error too.
        stream.on('error', () => {})
        // Already reset by the client, which wants no response.
        if (stream.closed || stream.destroyed) return takeBack()
        const places = client.take(raw.length / 2)
        // The request was not processed, so the client may send it again (RFC 9113 section 8.7).
        if (places === 0) return stream.close(constants.NGHTTP2_REFUSED_STREAM)
        open++
        watched.onRequest()
        stopWaiting()
        const res = serve(stream, joined, raw, peer, watched)
        stream.on('close', () => {
          open--
          client.giveBack(places)
          if (open === 0 && session.closed) cutSoon()
          else if (open === 0 && !session.destroyed) waitFor(KEEP_ALIVE_MS)
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
