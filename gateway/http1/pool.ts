/** The connections to one address of an upstream. */
import type { Fields } from '../message.js'
import type { RequestPool, ResponseHandler, WaitingTimes } from '../outgoing-request.js'
import { ClientConnection } from './client-connection.js'
import type { ConnectionOwner } from './connection-owner.js'
import { type Address, Connector } from './connector.js'
import type { Deadlines } from './deadlines.js'
import { Silence } from './silence.js'

/** How long an idle connection is kept when the upstream announces no timeout. */
export const IDLE_MS = 4_000
const LONGEST_IDLE_MS = 60_000
/** Closed this long before the upstream's own timeout, because a request sent just then would be lost. */
const MARGIN_MS = 1_000
const TIMEOUT = /(?:^|[\s,])timeout=(\d{1,9})/i

/** Keeps idle connections for the next request, and opens new ones. The caller limits how many are in use. */
export class ConnectionPool implements RequestPool, ConnectionOwner {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  readonly silence = new Silence<ClientConnection>()
  readonly #connector: Connector
  readonly #onUnreachable: (error: Error) => void
  readonly #all = new Set<ClientConnection>()
  /** A stack: the most recently used connection is taken first. */
  readonly #free: ClientConnection[] = []
  #isClosed = false

  /** `onUnreachable` gets the reason why a connection could not be opened. */
  constructor(
    address: Address,
    times: WaitingTimes,
    deadlines: Deadlines,
    onUnreachable: (error: Error) => void,
  ) {
    this.times = times
    this.deadlines = deadlines
    this.#connector = new Connector(address)
    this.#onUnreachable = onUnreachable
  }

  take(handler: ResponseHandler): void {
    const free = this.#free.pop()
    if (free === undefined) this.takeNew(handler)
    else handler.onConnection(free)
  }

  takeNew(handler: ResponseHandler): void {
    if (this.#isClosed) {
      handler.onFault('no-connection', new Error('the upstream is no longer used'), false)
      return
    }
    try {
      this.#all.add(new ClientConnection(this, this.#connector, handler))
    } catch (error) {
      // For example because the CA certificates cannot be parsed.
      this.onUnreachable(error as Error)
      handler.onFault('no-connection', error as Error, false)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#all) connection.cut()
  }

  onFree(connection: ClientConnection, responseFields: Fields | undefined): void {
    const idleMs = idleTime(responseFields?.get('keep-alive'))
    connection.deadline = this.deadlines.now() + idleMs
    if (idleMs > 0) this.#free.push(connection)
    else connection.abort()
  }

  onUnreachable(error: Error): void {
    this.#onUnreachable(error)
  }

  onClosed(connection: ClientConnection): void {
    this.#all.delete(connection)
    this.silence.delete(connection)
    const place = this.#free.indexOf(connection)
    if (place !== -1) this.#free.splice(place, 1)
  }
}

/** How many ms an idle connection is kept, given the upstream's Keep-Alive field. */
function idleTime(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? undefined : TIMEOUT.exec(keepAlive)?.[1]
  if (seconds === undefined) return IDLE_MS
  return Math.min(Number(seconds) * 1000 - MARGIN_MS, LONGEST_IDLE_MS)
}
