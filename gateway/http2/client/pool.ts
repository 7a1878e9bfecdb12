/** The HTTP/2 connections to one address of an upstream. */
import { type Address, Connector } from '../../http1/connector.js'
import type { Deadlines } from '../../http1/deadlines.js'
import { IDLE_MS } from '../../http1/pool.js'
import type { ConnectionFault, RequestPool, ResponseHandler, WaitingTimes } from '../../outgoing-request.js'
import { MAX_STREAMS } from '../limits.js'
import { Http2ClientConnection } from './connection.js'
import type { Http2ConnectionOwner } from './connection-owner.js'
import type { Scheme } from './request-fields.js'
import { fail, WaitingRequests } from './waiting.js'

/** Puts requests side by side on as few connections as have room for them. */
export class Http2ConnectionPool implements RequestPool, Http2ConnectionOwner {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  readonly scheme: Scheme
  readonly idleMs = IDLE_MS
  readonly #connector: Connector
  readonly #onUnreachable: (error: Error) => void
  readonly #all = new Set<Http2ClientConnection>()
  /** Connections that take requests, the oldest first: it is filled first, so that those not needed fall idle. */
  readonly #usable = new Set<Http2ClientConnection>()
  /** Connections that are being opened: at least one while a request waits. */
  readonly #opening = new Set<Http2ClientConnection>()
  readonly #waiting: WaitingRequests
  /** Connections that have got room while requests were being given places. */
  readonly #roomy = new Set<Http2ClientConnection>()
  #isServing = false
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
    this.scheme = address.tls === undefined ? 'http' : 'https'
    this.#connector = new Connector(address, 'h2')
    this.#onUnreachable = onUnreachable
    this.#waiting = new WaitingRequests(deadlines, times.connectMs)
  }

  take(handler: ResponseHandler): void {
    for (const connection of this.#usable) {
      if (!connection.hasRoom) continue
      connection.take(handler)
      return
    }
    this.#wait(handler, false)
  }

  /** Those who come together share the new connection. */
  takeNew(handler: ResponseHandler): void {
    this.#wait(handler, true)
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#all) connection.cut()
  }

  onReady(connection: Http2ClientConnection): void {
    this.#opening.delete(connection)
    this.#usable.add(connection)
    this.#serve(connection, true)
    const error = this.#openFor(this.#waiting.size)
    if (error !== undefined) this.#waiting.fail('no-connection', error)
  }

  onRoom(connection: Http2ClientConnection): void {
    this.#serve(connection, false)
  }

  onLeaving(connection: Http2ClientConnection): void {
    this.#usable.delete(connection)
  }

  onClosed(connection: Http2ClientConnection, fault: ConnectionFault, error: Error): void {
    this.#all.delete(connection)
    if (!this.#opening.delete(connection)) return
    if (!this.#isClosed) this.#onUnreachable(error)
    // An upstream that is about to stop may send GOAWAY at once: what it has not seen may be tried again.
    const waitingFault = fault === 'refused' ? 'refused' : 'no-connection'
    if (this.#opening.size === 0) this.#waiting.fail(waitingFault, error)
  }

  #wait(handler: ResponseHandler, needsNew: boolean): void {
    const error = this.#isClosed
      ? new Error('the upstream is no longer used')
      : this.#openFor(this.#waiting.size + 1)
    if (error === undefined) this.#waiting.add(handler, needsNew)
    else fail(handler, 'no-connection', error)
  }

  /**
   * Gives waiting requests what room the connection has. One whose client has left gives its place back at once, which comes
   * here again: there may be thousands of those, so that is not done within one another.
   */
  #serve(connection: Http2ClientConnection, isNew: boolean): void {
    if (this.#isServing) {
      this.#roomy.add(connection)
      return
    }
    this.#isServing = true
    try {
      this.#fill(connection, isNew)
      for (const other of this.#roomy) {
        this.#roomy.delete(other)
        this.#fill(other, false)
      }
    } finally {
      this.#isServing = false
    }
  }

  #fill(connection: Http2ClientConnection, isNew: boolean): void {
    while (this.#waiting.size > 0 && connection.hasRoom) {
      const handler = this.#waiting.take(isNew)
      if (handler === undefined) return
      connection.take(handler)
    }
  }

  /** Opens as many connections as `requests` will need; the error if none can be opened. */
  #openFor(requests: number): Error | undefined {
    const each = this.#expectedStreams
    try {
      while (this.#opening.size * each < requests) {
        const connection = new Http2ClientConnection(this, this.#connector)
        this.#all.add(connection)
        this.#opening.add(connection)
      }
    } catch (error) {
      // For example because the CA certificates cannot be parsed.
      this.#onUnreachable(error as Error)
      if (this.#opening.size === 0) return error as Error
    }
    return undefined
  }

  /** How many streams a new connection will allow: as many as the latest that is in use, until it says so itself. */
  get #expectedStreams(): number {
    let streams = MAX_STREAMS
    for (const { maxStreams } of this.#usable) streams = maxStreams
    return Math.max(1, streams)
  }
}
