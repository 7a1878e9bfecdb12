import type { Deadlines } from '../http1/deadlines.js'
import { ConnectionPool } from '../http1/pool.js'
import { Http2ConnectionPool } from '../http2/client/pool.js'
import type { RequestPool, WaitingTimes } from '../outgoing-request.js'
import type { BackendEvents } from './backend-events.js'
import { BackendQueue } from './backend-queue.js'
import { shareAt } from './balance.js'
import { HealthChecks, type HealthSettings } from './health-check.js'
import { addressText } from './name-addresses.js'
import { probe } from './probe.js'
import { type Fault, Standing } from './standing.js'
import { addressOf, type Origin, type UpstreamSettings } from './transport.js'

/** Concurrent requests to an embedded service. */
const REQUESTS = 1024
/** This process has no file descriptor left, which says nothing about the backend. */
const OWN_FAULTS = new Set(['EMFILE', 'ENFILE'])

/** An address that could not be reached is tried again, without a request, when none has tried it for so long. */
const PROBE_AFTER_MS = 10_000

/** One address of an upstream: its connections, its load, and whether it is ejected. */
export class Backend {
  readonly origin: Origin
  /** Scheme, host and port. */
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
  /** Survives a reload that does not change the address. */
  readonly standing: Standing
  #lastFailure: Error | undefined
  /** True for an upstream's only backend: it is never left out, as there is no other to use instead. */
  readonly #isOnly: () => boolean
  readonly #openPool: (onUnreachable: (error: Error) => void, times?: WaitingTimes) => RequestPool
  readonly #checks: HealthChecks | undefined
  #isLeaving = false
  #probing: { timer: NodeJS.Timeout; pool?: RequestPool } | undefined

  /** @param known the backend of the same address so far, which a reload replaces */
  constructor(
    origin: Origin,
    settings: UpstreamSettings,
    events: BackendEvents,
    deadlines: Deadlines,
    isOnly: () => boolean,
    known?: Backend,
  ) {
    this.origin = origin
    this.address = addressText(origin)
    this.weight = origin.weight
    this.#slowStartMs = settings.slowStartMs
    this.#events = events
    this.#isOnly = isOnly
    this.standing = new Standing(known?.standing)
    this.places = new BackendQueue(settings.connections ?? REQUESTS)
    const address = addressOf(origin, settings.ca)
    const isHttp1 = (settings.protocol ?? 'http1') === 'http1'
    this.#openPool = (onUnreachable, times = settings.timeouts) => {
      const Pool = isHttp1 ? ConnectionPool : Http2ConnectionPool
      return new Pool(address, times, deadlines, onUnreachable)
    }
    const onUnreachable = (error: Error) => this.unreachable(error)
    this.pool = this.#openPool(onUnreachable)
    this.upgradePool = isHttp1
      ? this.pool
      : new ConnectionPool(address, settings.timeouts, deadlines, onUnreachable)
    this.#checks = settings.health && this.#check(settings.health)
    // Nobody would find out that it is well again.
    if (settings.health === undefined) this.standing.unhealthy = undefined
    if (this.standing.isCutOff) this.#probeLater()
  }

  /** The address is new beside others. */
  join(): void {
    this.#startSlowly()
  }

  /** It gets no more requests; those in progress end here. */
  leave(): void {
    this.#isLeaving = true
    this.#stopProbing()
    this.#checks?.close()
  }

  /** True while requests in progress end, and no more come. */
  get isLeaving(): boolean {
    return this.#isLeaving
  }

  /** Closes all connections, except those of open WebSockets. */
  close(): void {
    this.#stopProbing()
    this.#checks?.close()
    this.pool.close()
    this.upgradePool.close()
  }

  get ejected(): boolean {
    return !this.#isOnly() && this.standing.ejection.ejected
  }

  /** Set while it fails its health checks. */
  get unhealthy(): Fault | undefined {
    return this.standing.unhealthy
  }

  /** True while others are used instead, if there are any. */
  get isLeftOut(): boolean {
    return this.standing.ejection.ejected || this.standing.unhealthy !== undefined
  }

  /** Set while no connection can be opened, and after several failures in a row. */
  get fault(): Fault | undefined {
    return this.standing.fault
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
    const { backSince } = this.standing
    if (backSince === undefined || this.#slowStartMs === undefined) return this.weight
    const share = shareAt(now, backSince, this.#slowStartMs)
    if (share === 1) this.standing.backSince = undefined
    return this.weight * share
  }

  /** The backend has responded, whatever the status. */
  answered(): void {
    const wasEjected = this.standing.ejection.succeeded()
    if (this.standing.fault === undefined) return
    this.standing.fault = undefined
    this.standing.isCutOff = false
    this.#stopProbing()
    if (wasEjected) this.#startSlowly()
    if (wasEjected || this.#isOnly()) this.#events.returned?.(this)
  }

  /** No connection could be opened. */
  unreachable(error: NodeJS.ErrnoException): void {
    this.#events.unreachable(this, error)
    if (OWN_FAULTS.has(error.code ?? '')) return
    this.standing.noteFault(error, true)
    this.failed(error, true)
    this.#probeLater()
  }

  /** A request got no response, possibly through the backend's fault. */
  failed(error: Error, isCutOff = false): void {
    // Many requests that share a connection fail by one and the same event.
    if (error === this.#lastFailure) return
    this.#lastFailure = error
    const { ejection } = this.standing
    const isEjected = ejection.failed(performance.now())
    if (ejection.ejected) this.standing.noteFault(error, isCutOff)
    if (isEjected && !this.#isOnly()) this.#events.ejected?.(this, error)
  }

  /** True when a single request should try the backend although it is ejected. */
  isTrialDue(): boolean {
    const { ejection, unhealthy } = this.standing
    return unhealthy === undefined && ejection.isTrialDue(performance.now())
  }

  /** A request tries the ejected backend; the next trial is due later. */
  startTrial(): void {
    this.standing.ejection.startTrial(performance.now())
  }

  #startSlowly(): void {
    this.standing.backSince = performance.now()
    this.credit = 0
  }

  #check(health: HealthSettings): HealthChecks {
    const { timeoutMs } = health
    const times = { connectMs: timeoutMs, headMs: timeoutMs, idleMs: timeoutMs }
    return new HealthChecks(
      health,
      this.#openPool(() => undefined, times),
      this.origin.url.host,
      {
        checked: (error, isCutOff) => this.#checked(health, error, isCutOff),
        tooLong: bytes => this.#events.checkTooLong?.(this, bytes),
      },
    )
  }

  #checked(health: HealthSettings, error: NodeJS.ErrnoException | undefined, isCutOff: boolean): void {
    if (OWN_FAULTS.has(error?.code ?? '')) return
    this.#events.checked?.(this, error)
    const change = this.standing.checked(error, health)
    if (isCutOff && error !== undefined) this.standing.noteFault(error, true)
    // Whether requests are answered only a request can say, unless they failed for want of a connection.
    else if (error === undefined && (this.standing.isCutOff || change === 'healthy')) this.answered()
    if (change === undefined) return
    if (change === 'healthy') this.#startSlowly()
    this.#events.healthChanged?.(this, error)
  }

  #probeLater(): void {
    if (this.#checks !== undefined || this.#isLeaving) return
    clearTimeout(this.#probing?.timer)
    const timer = setTimeout(() => this.#probe(), PROBE_AFTER_MS).unref()
    this.#probing = { ...this.#probing, timer }
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
