import type { Deadlines } from '../http1/deadlines.js'
import { ConnectionPool } from '../http1/pool.js'
import { Ejection } from './ejection.js'
import { addressOf, type UpstreamSettings } from './transport.js'

/** Default number of concurrent requests: more than a usual upstream allows, as queueing costs more than connecting. */
const REQUESTS = 1024
/** Most requests that may wait for a place. */
const WAITING = 1024

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

/** A request that waits for a place. */
export interface Waiting {
  /** Called when the request has been given a place. */
  go(): void
}

/** One address of an upstream: its connections, its load, and whether it is ejected. */
export class Backend {
  /** Scheme, host and port. */
  readonly origin: URL
  /** `origin` as text. */
  readonly address: string
  readonly pool: ConnectionPool
  /** Open WebSockets, including those in their handshake. */
  tunnels = 0
  readonly #events: BackendEvents
  /** Undefined for an upstream's only backend, as there is no other to use instead. */
  readonly #ejection: Ejection | undefined
  readonly #most: number
  readonly #queue = new Set<Waiting>()
  #underWay = 0

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
    this.#most = settings.connections ?? REQUESTS
    this.pool = new ConnectionPool(addressOf(origin, settings.ca), settings.timeouts, deadlines, error =>
      this.unreachable(error),
    )
  }

  get ejected(): boolean {
    return this.#ejection?.ejected ?? false
  }

  /** Requests in progress or waiting, without WebSockets. */
  get requests(): number {
    return this.#underWay + this.#queue.size
  }

  get load(): number {
    return this.requests + this.tunnels
  }

  /** Takes a place for one request; false when all are taken. */
  enter(): boolean {
    if (this.#underWay >= this.#most) return false
    this.#underWay += 1
    return true
  }

  /** Queues the request for a place; false when the queue is full. */
  wait(request: Waiting): boolean {
    if (this.#queue.size >= WAITING) return false
    this.#queue.add(request)
    return true
  }

  /** Removes the request from the queue; false if it was not waiting. */
  stopWaiting(request: Waiting): boolean {
    return this.#queue.delete(request)
  }

  /** Gives a place back, or passes it to the request that has waited longest. */
  leave(): void {
    const [next] = this.#queue
    if (next === undefined) {
      this.#underWay -= 1
      return
    }
    this.#queue.delete(next)
    // Asynchronous, because many waiting requests that fail at once would overflow the stack.
    process.nextTick(() => next.go())
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
    if (this.#ejection?.failed(performance.now())) this.#events.ejected?.(this, error)
  }

  /** True for the one request that may try the backend although it is ejected. */
  tries(): boolean {
    return this.#ejection?.tries(performance.now()) ?? false
  }
}
