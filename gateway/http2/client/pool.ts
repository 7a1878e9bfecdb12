/** The HTTP/2 connections to one address of an upstream. */
import { type Address, Connector } from '../../http1/connector.js'
import type { Deadlines } from '../../http1/deadlines.js'
import { IDLE_MS } from '../../http1/pool.js'
import type { RequestPool, ResponseHandler, WaitingTimes } from '../../outgoing-request.js'
import { MAX_STREAMS } from '../limits.js'
import { Http2ClientConnection } from './connection.js'
import type { Http2ConnectionOwner } from './connection-owner.js'
import type { Scheme } from './request-fields.js'

/** Puts requests side by side on as few connections as have room for them. */
export class Http2ConnectionPool implements RequestPool, Http2ConnectionOwner {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  readonly scheme: Scheme
  readonly idleMs = IDLE_MS
  /** Of the latest SETTINGS: a new connection is assumed to have the same. */
  maxStreams = MAX_STREAMS
  readonly #connector: Connector
  readonly #onUnreachable: (error: Error) => void
  readonly #all = new Set<Http2ClientConnection>()
  /** Connections that take requests, the oldest first: it is filled first, so that those not needed fall idle. */
  readonly #usable = new Set<Http2ClientConnection>()
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
  }

  take(handler: ResponseHandler): void {
    for (const connection of this.#usable) {
      if (!connection.hasRoom) continue
      connection.take(handler)
      return
    }
    this.#takeOpened(handler)
  }

  /** Those who come together share the new connection. */
  takeNew(handler: ResponseHandler): void {
    for (const connection of this.#usable) {
      if (!connection.isOpening || !connection.hasRoom) continue
      connection.take(handler)
      return
    }
    this.#takeOpened(handler)
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#all) connection.cut()
  }

  onUnreachable(error: Error): void {
    this.#onUnreachable(error)
  }

  onLeaving(connection: Http2ClientConnection): void {
    this.#usable.delete(connection)
  }

  onClosed(connection: Http2ClientConnection): void {
    this.#all.delete(connection)
  }

  #takeOpened(handler: ResponseHandler): void {
    if (this.#isClosed) {
      handler.onFault('no-connection', new Error('the upstream is no longer used'), false)
      return
    }
    try {
      const connection = new Http2ClientConnection(this, this.#connector)
      this.#all.add(connection)
      this.#usable.add(connection)
      connection.take(handler)
    } catch (error) {
      // For example because the CA certificates cannot be parsed.
      this.onUnreachable(error as Error)
      handler.onFault('no-connection', error as Error, false)
    }
  }
}
