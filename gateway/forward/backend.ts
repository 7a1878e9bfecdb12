import type { Deadlines } from '../http1/deadlines.js'
import { ConnectionPool } from '../http1/pool.js'
import { Http2ConnectionPool } from '../http2/client/pool.js'
import type { RequestPool } from '../outgoing-request.js'
import { BackendQueue } from './backend-queue.js'
import { Ejection } from './ejection.js'
import { addressOf, type UpstreamSettings } from './transport.js'

/** Concurrent requests to an embedded service. */
const REQUESTS = 1024
/** This process has no file descriptor left, which says nothing about the backend. */
const OWN_FAULTS = new Set(['EMFILE', 'ENFILE'])

/** Receives events of an upstream's backends. Errors may name their addresses. */
export interface BackendEvents {
  /** No connection could be opened. */
  unreachable(backend: Backend, error: Error): void
  /** The backend is avoided from now on. */
  ejected?(backend: Backend, error: Error): void
  /** The backend responds again. */
  returned?(backend: Backend): void
}

/** One address of an upstream: its connections, its load, and whether it is ejected. */
export class Backend {
  /** Scheme, host and port. */
  readonly origin: URL
  /** `origin` as text. */
  readonly address: string
  readonly pool: RequestPool
  /** For WebSockets, which only HTTP/1.1 opens. */
  readonly upgradePool: RequestPool
  readonly places: BackendQueue
  /** Open WebSockets, including those in their handshake. */
  tunnels = 0
  readonly #events: BackendEvents
  #lastFailure: Error | undefined
  /** Undefined for an upstream's only backend, as there is no other to use instead. */
  readonly #ejection: Ejection | undefined

  constructor(
    origin: URL,
    settings: UpstreamSettings,
    events: BackendEvents,
    deadlines: Deadlines,
    isOnly: boolean,
  ) {
    this.origin = origin
    this.address = origin.origin
    this.#events = events
    this.#ejection = isOnly ? undefined : new Ejection()
    this.places = new BackendQueue(settings.connections ?? REQUESTS)
    const open = (Pool: typeof ConnectionPool | typeof Http2ConnectionPool): RequestPool =>
      new Pool(addressOf(origin, settings.ca), settings.timeouts, deadlines, error => this.unreachable(error))
    this.upgradePool = open(ConnectionPool)
    const isHttp1 = (settings.protocol ?? 'http1') === 'http1'
    this.pool = isHttp1 ? this.upgradePool : open(Http2ConnectionPool)
  }

  /** Closes all connections, except those of open WebSockets. */
  close(): void {
    this.pool.close()
    this.upgradePool.close()
  }

  get ejected(): boolean {
    return this.#ejection?.ejected ?? false
  }

  /** Requests in progress or waiting, without WebSockets. */
  get requests(): number {
    return this.places.size
  }

  get load(): number {
    return this.requests + this.tunnels
  }

  /** The backend has responded, whatever the status. */
  answered(): void {
    if (this.#ejection?.succeeded()) this.#events.returned?.(this)
  }

  /** No connection could be opened. */
  unreachable(error: NodeJS.ErrnoException): void {
    this.#events.unreachable(this, error)
    if (!OWN_FAULTS.has(error.code ?? '')) this.failed(error)
  }

  /** A request got no response, possibly through the backend's fault. */
  failed(error: Error): void {
    // Many requests that share a connection fail by one and the same event.
    if (error === this.#lastFailure) return
    this.#lastFailure = error
    if (this.#ejection?.failed(performance.now())) this.#events.ejected?.(this, error)
  }

  /** True when a single request should try the backend although it is ejected. */
  isTrialDue(): boolean {
    return this.#ejection?.isTrialDue(performance.now()) ?? false
  }

  /** A request tries the ejected backend; the next trial is due later. */
  startTrial(): void {
    this.#ejection?.startTrial(performance.now())
  }
}
