import type { Deadlines } from '../http1/deadlines.js'
import { ConnectionPool } from '../http1/pool.js'
import { Http2ConnectionPool } from '../http2/client/pool.js'
import type { RequestPool } from '../outgoing-request.js'
import { BackendQueue } from './backend-queue.js'
import { shareAt } from './balance.js'
import { Ejection } from './ejection.js'
import { causeOf } from './failure.js'
import { probe } from './probe.js'
import { addressOf, type Origin, type UpstreamSettings } from './transport.js'

/** Concurrent requests to an embedded service. */
const REQUESTS = 1024
/** This process has no file descriptor left, which says nothing about the backend. */
const OWN_FAULTS = new Set(['EMFILE', 'ENFILE'])

/** An address that could not be reached is tried again, without a request, when none has tried it for so long. */
const PROBE_AFTER_MS = 10_000

/** Why an address does not answer, and since when. */
export interface Fault {
  /** In words, for operators; it may name the address. */
  readonly cause: string
  /** Milliseconds since the epoch. */
  readonly since: number
}

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
  /** For those that choose among backends. */
  credit = 0
  readonly weight: number
  readonly #events: BackendEvents
  readonly #slowStartMs: number | undefined
  /** When it has come back, in ms of `performance.now()`; undefined once that no longer matters. */
  #backSince: number | undefined
  #lastFailure: Error | undefined
  #fault: Fault | undefined
  readonly #ejection = new Ejection()
  /** True for an upstream's only backend: it is never left out, as there is no other to use instead. */
  readonly #isOnly: boolean
  readonly #openPool: (onUnreachable: (error: Error) => void) => RequestPool
  #probing: { readonly timer: NodeJS.Timeout; pool?: RequestPool } | undefined

  constructor(
    { url, weight }: Origin,
    settings: UpstreamSettings,
    events: BackendEvents,
    deadlines: Deadlines,
    isOnly: boolean,
  ) {
    this.origin = url
    this.address = url.origin
    this.weight = weight
    this.#slowStartMs = settings.slowStartMs
    this.#events = events
    this.#isOnly = isOnly
    this.places = new BackendQueue(settings.connections ?? REQUESTS)
    const address = addressOf(url, settings.ca)
    const isHttp1 = (settings.protocol ?? 'http1') === 'http1'
    this.#openPool = onUnreachable => {
      const Pool = isHttp1 ? ConnectionPool : Http2ConnectionPool
      return new Pool(address, settings.timeouts, deadlines, onUnreachable)
    }
    const onUnreachable = (error: Error) => this.unreachable(error)
    this.pool = this.#openPool(onUnreachable)
    this.upgradePool = isHttp1
      ? this.pool
      : new ConnectionPool(address, settings.timeouts, deadlines, onUnreachable)
  }

  /** Closes all connections, except those of open WebSockets. */
  close(): void {
    this.#stopProbing()
    this.pool.close()
    this.upgradePool.close()
  }

  get ejected(): boolean {
    return !this.#isOnly && this.#ejection.ejected
  }

  /** Set while no connection can be opened, and after several failures in a row. */
  get fault(): Fault | undefined {
    return this.#fault
  }

  /** Requests in progress or waiting, without WebSockets. */
  get requests(): number {
    return this.places.size
  }

  get load(): number {
    return this.requests + this.tunnels
  }

  /** `weight`, or less while it starts slowly; `now` is in ms of `performance.now()`. */
  weightAt(now: number): number {
    if (this.#backSince === undefined || this.#slowStartMs === undefined) return this.weight
    const share = shareAt(now, this.#backSince, this.#slowStartMs)
    if (share === 1) this.#backSince = undefined
    return this.weight * share
  }

  /** The backend has responded, whatever the status. */
  answered(): void {
    const wasEjected = this.#ejection.succeeded()
    if (this.#fault === undefined) return
    if (wasEjected) this.#startSlowly()
    this.#fault = undefined
    this.#stopProbing()
    if (wasEjected || this.#isOnly) this.#events.returned?.(this)
  }

  /** No connection could be opened. */
  unreachable(error: NodeJS.ErrnoException): void {
    this.#events.unreachable(this, error)
    if (OWN_FAULTS.has(error.code ?? '')) return
    this.#noteFault(error)
    this.failed(error)
    this.#probeLater()
  }

  /** A request got no response, possibly through the backend's fault. */
  failed(error: Error): void {
    // Many requests that share a connection fail by one and the same event.
    if (error === this.#lastFailure) return
    this.#lastFailure = error
    const isEjected = this.#ejection.failed(performance.now())
    if (this.#ejection.ejected) this.#noteFault(error)
    if (isEjected && !this.#isOnly) this.#events.ejected?.(this, error)
  }

  /** True when a single request should try the backend although it is ejected. */
  isTrialDue(): boolean {
    return this.#ejection.isTrialDue(performance.now())
  }

  /** A request tries the ejected backend; the next trial is due later. */
  startTrial(): void {
    this.#ejection.startTrial(performance.now())
  }

  #startSlowly(): void {
    this.#backSince = performance.now()
    this.credit = 0
  }

  /** The cause is the latest, since it may change while the backend is away. */
  #noteFault(error: Error): void {
    this.#fault = { cause: causeOf(error), since: this.#fault?.since ?? Date.now() }
  }

  #probeLater(): void {
    this.#probing ??= { timer: setTimeout(() => this.#probe(), PROBE_AFTER_MS).unref() }
    this.#probing.timer.refresh()
  }

  /** What is said of a backend that nobody asks should stay true. */
  #probe(): void {
    if (this.#probing === undefined) return
    // Its own, so that its failures are not logged as those of requests.
    this.#probing.pool ??= this.#openPool(() => undefined)
    probe(this.#probing.pool, error => {
      if (this.#probing === undefined) return
      if (error === undefined) this.answered()
      else this.#probeLater()
    })
  }

  #stopProbing(): void {
    if (this.#probing === undefined) return
    const { timer, pool } = this.#probing
    this.#probing = undefined
    clearTimeout(timer)
    pool?.close()
  }
}
