import type { Deadlines } from '../http1/deadlines.js'
import { ConnectionPool } from '../http1/pool.js'
import { Ejection } from './ejection.js'
import { addressOf, type UpstreamSettings } from './transport.js'

/** Requests at a time. More than the limits of a usual upstream: queueing here costs more than a connection. */
const REQUESTS = 1024
/** Requests that may wait for others to end: beyond that, waiting helps nobody. */
const WAITING = 1024

/** Listens to events of an upstream's backends; reasons may name their addresses. */
export interface BackendEvents {
  /** No connection could be opened, or it broke before an answer. */
  unreachable(backend: Backend, error: Error): void
  /** Left out from now on. */
  ejected?(backend: Backend, error: Error): void
  /** It answers again. */
  returned?(backend: Backend): void
}

/** A request that waits for its turn. */
export interface Waiting {
  /** Called once a place is taken for it. */
  go(): void
}

/** One address of an upstream: its connections, what is under way on them, and whether it is left out. */
export class Backend {
  /** Scheme, host and port. */
  readonly origin: URL
  /** The same as text. */
  readonly address: string
  readonly pool: ConnectionPool
  /** Open WebSockets, the handshakes among them. */
  tunnels = 0
  readonly #events: BackendEvents
  /** Absent for an upstream's only backend: there is nowhere else to go. */
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

  /** Under way or waiting, WebSockets apart. */
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

  /** Waits for a place; false when too many do. */
  wait(request: Waiting): boolean {
    if (this.#queue.size >= WAITING) return false
    this.#queue.add(request)
    return true
  }

  /** True when the request was waiting, and now no longer is. */
  stopWaiting(request: Waiting): boolean {
    return this.#queue.delete(request)
  }

  /** Gives a place back, or on to the one that has waited longest. */
  leave(): void {
    const [next] = this.#queue
    if (next === undefined) {
      this.#underWay -= 1
      return
    }
    this.#queue.delete(next)
    // Not called from within the end of another request: many that fail at once would overflow the stack.
    process.nextTick(() => next.go())
  }

  /** It has answered, whatever the status. */
  answered(): void {
    if (this.#ejection?.succeeded()) this.#events.returned?.(this)
  }

  /** No connection could be opened, or it broke before an answer. */
  unreachable(error: Error): void {
    this.#events.unreachable(this, error)
    this.failed(error)
  }

  /** It did not answer, for a reason that may lie in it. */
  failed(error: Error): void {
    if (this.#ejection?.failed(performance.now())) this.#events.ejected?.(this, error)
  }

  /** True for the one request that may try it although it is ejected. */
  tries(): boolean {
    return this.#ejection?.tries(performance.now()) ?? false
  }
}
