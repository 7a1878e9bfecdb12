/** The connections to one address of an upstream. */
import type { Fields } from '../message.js'
import type { Asker } from './asker.js'
import { ClientConnection, type Home, type WaitingTimes } from './client-connection.js'
import { type Address, Connector } from './connector.js'
import type { Deadlines } from './deadlines.js'

/** How long an idle connection is kept if its upstream does not say. */
const KEPT_MS = 4_000
const LONGEST_KEPT_MS = 60_000
/** How long before the upstream's own timeout it is closed: a request sent just then would be lost. */
const MARGIN_MS = 1_000
const TIMEOUT = /(?:^|[\s,])timeout=(\d{1,9})/i

/** Keeps connections for the next request, and opens them where none is free. Its user bounds how many are in use. */
export class ConnectionPool implements Home {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  readonly #connector: Connector
  readonly #onUnreachable: (error: Error) => void
  readonly #all = new Set<ClientConnection>()
  /** The one that was used last comes last, and is taken first. */
  readonly #free: ClientConnection[] = []
  #isClosed = false

  /** `onUnreachable` hears why a connection could not be opened. */
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

  /** A connection for one request: `asker` is given it at once, or when it stands, or hears that none does. */
  take(asker: Asker): void {
    const free = this.#free.pop()
    if (free === undefined) this.takeNew(asker)
    else asker.onConnection(free)
  }

  /** The same, but for one that cannot be stale. */
  takeNew(asker: Asker): void {
    try {
      if (this.#isClosed) throw new Error('the upstream is no longer used')
      this.#all.add(new ClientConnection(this, this.#connector, asker))
    } catch (error) {
      // For example CA certificates that cannot be read.
      this.onUnreachable(error as Error)
      asker.onFault('no-connection', error as Error, false)
    }
  }

  /** Cuts what is still under way. */
  close(): void {
    this.#isClosed = true
    for (const connection of this.#all) connection.cut()
  }

  onFree(connection: ClientConnection, told: Fields | undefined): void {
    const keptMs = keptFor(told?.get('keep-alive'))
    connection.deadline = this.deadlines.now() + keptMs
    if (keptMs > 0) this.#free.push(connection)
    else connection.abort()
  }

  onUnreachable(error: Error): void {
    this.#onUnreachable(error)
  }

  onClosed(connection: ClientConnection): void {
    this.#all.delete(connection)
    const place = this.#free.indexOf(connection)
    if (place !== -1) this.#free.splice(place, 1)
  }
}

/** Milliseconds, by what the upstream says. */
function keptFor(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? undefined : TIMEOUT.exec(keepAlive)?.[1]
  if (seconds === undefined) return KEPT_MS
  return Math.min(Number(seconds) * 1000 - MARGIN_MS, LONGEST_KEPT_MS)
}
