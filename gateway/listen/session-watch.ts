/**
 * Checks the HTTP/2 connections once a second: whether their clients are still there, and whether what they send is of
 * use.
 *
 * Node may not notice that a client is gone: if a write fails before the reset is read, its TLS layer never completes
 * the next write, and the session reads nothing while it writes. So a silent client is pinged (RFC 9113 section 6.7).
 */
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { MAX_HEAD } from './limits.js'

const ROUND_MS = 1_000
/** Silence before a client is pinged. */
const QUIET_MS = 10_000
/** Time after a ping for any byte to be received or sent: long enough for a client that reads only now and then. */
const PATIENCE_MS = 20_000
const WINDOW_MS = 10_000
/** Bytes per window that serve no request, upload or response: about 20,000 frames of WINDOW_UPDATE or PRIORITY. */
const MAX_USELESS = 256 * 1024
/** A client may reply to each of our frames, even the smallest, with two WINDOW_UPDATE frames. */
const USEFUL_PER_BYTE_SENT = 3
const FRAME_HEAD = 9

type Session = Pick<ServerHttp2Session, 'ping' | 'destroyed'>
type Wire = Pick<Socket, 'bytesRead' | 'bytesWritten'>

export interface SessionEnds {
  /** The client no longer responds. */
  gone(): void
  /** The client sends too many useless frames. */
  floods(): void
}

export class SessionWatch {
  readonly #watched = new Set<WatchedSession>()
  #rounds: NodeJS.Timeout | undefined

  /** Watches a session until `remove`. */
  add(session: Session, wire: Wire, ends: SessionEnds): WatchedSession {
    const watched = new WatchedSession(session, wire, ends, performance.now())
    this.#watched.add(watched)
    this.#rounds ??= setInterval(() => {
      const now = performance.now()
      for (const one of this.#watched) one.look(now)
    }, ROUND_MS).unref()
    return watched
  }

  remove(watched: WatchedSession): void {
    this.#watched.delete(watched)
    if (this.#watched.size > 0) return
    clearInterval(this.#rounds)
    this.#rounds = undefined
  }
}

export class WatchedSession {
  readonly #session: Session
  readonly #wire: Wire
  readonly #ends: SessionEnds
  #read = 0
  #written = 0
  /** When the last byte was received, and when one was last received or sent. */
  #seenAt: number
  #movedAt: number
  #pinged = false
  /** Total of useful bytes received. */
  #useful = 0
  #uselessBefore = 0
  #windowEnds: number

  constructor(session: Session, wire: Wire, ends: SessionEnds, now: number) {
    this.#session = session
    this.#wire = wire
    this.#ends = ends
    this.#seenAt = this.#movedAt = now
    this.#windowEnds = now + WINDOW_MS
  }

  /** A request has arrived. Other limits bound the number of requests. */
  onRequest(): void {
    this.#useful += MAX_HEAD
  }

  /** `bytes` of an upload have arrived, in one frame. */
  onUpload(bytes: number): void {
    this.#useful += bytes + FRAME_HEAD
  }

  look(now: number): void {
    const { bytesRead, bytesWritten } = this.#wire
    if (bytesRead !== this.#read) {
      this.#seenAt = this.#movedAt = now
      this.#pinged = false
    } else if (bytesWritten !== this.#written) this.#movedAt = now
    this.#read = bytesRead
    this.#written = bytesWritten
    if (this.#session.destroyed || this.#pinged) {
      if (now - this.#movedAt >= PATIENCE_MS) this.#ends.gone()
    } else if (this.#uselessNow(now) > MAX_USELESS) this.#ends.floods()
    else if (now - this.#seenAt >= QUIET_MS) this.#ping(now)
  }

  #ping(now: number): void {
    this.#pinged = true
    this.#movedAt = now
    // The reply is noticed by the bytes received.
    this.#session.ping(() => {})
  }

  /** Counts the useless bytes of the current window, which begins now if the last is over. */
  #uselessNow(now: number): number {
    const useless = this.#read - this.#useful - this.#written * USEFUL_PER_BYTE_SENT
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + WINDOW_MS
      this.#uselessBefore = useless
    }
    return useless - this.#uselessBefore
  }
}
