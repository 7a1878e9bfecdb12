import type { Socket } from 'node:net'
import { Deadlines } from '../../http1/deadlines.js'
import type { ServerHandlers, ServerSettings } from '../../http1/server-connections.js'
import type { Arrival, Flood } from '../../message.js'
import { Http2ServerConnection } from './connection.js'
import type { ClientLimits } from './streams.js'

export interface Http2Handlers extends Pick<ServerHandlers, 'request' | 'failed'> {
  /** A connection was ended for what its client sent too much of. */
  flooded?(flood: Flood): void
}

export type Http2Settings = Pick<ServerSettings, 'headTimeoutMs' | 'requestTimeoutMs' | 'keepAliveMs'>

/** The HTTP/2 connections of one port. */
export class Http2ServerConnections {
  readonly handlers: Http2Handlers
  readonly settings: Http2Settings
  readonly deadlines = new Deadlines()
  readonly #clientAt: (address: string) => ClientLimits
  readonly #open = new Set<Http2ServerConnection>()
  /** Connections without a request, the longest idle first. */
  readonly #idle = new Set<Http2ServerConnection>()
  #draining = false

  /** @param clientAt the limits of the client at an address */
  constructor(handlers: Http2Handlers, settings: Http2Settings, clientAt: (address: string) => ClientLimits) {
    this.handlers = handlers
    this.settings = settings
    this.#clientAt = clientAt
  }

  /** Accepts a connection that has negotiated HTTP/2, or begins with it in the clear. */
  accept(socket: Socket, arrival: Arrival): void {
    const peer = {
      ...arrival,
      localPort: socket.localPort ?? 0,
      encrypted: 'encrypted' in socket,
    }
    const connection = new Http2ServerConnection(socket, peer, this.#clientAt(arrival.address), this)
    this.#open.add(connection)
    this.#idle.add(connection)
    this.deadlines.add(connection)
    if (this.#draining) connection.drain()
  }

  /** A request is in progress on the connection, or the connection is ending. True if it was idle before. */
  busy(connection: Http2ServerConnection): boolean {
    return this.#idle.delete(connection)
  }

  /** The connection waits for its next request. */
  idle(connection: Http2ServerConnection): void {
    this.#idle.add(connection)
  }

  closed(connection: Http2ServerConnection): void {
    this.#idle.delete(connection)
    this.#open.delete(connection)
    this.deadlines.delete(connection)
  }

  /** Closes the connection that has been idle longest. False if there is none. */
  closeLongest(): boolean {
    const [longest] = this.#idle
    longest?.closeIdle()
    return longest !== undefined
  }

  destroyAll(): void {
    for (const connection of this.#open) connection.destroy()
  }

  /** Every connection ends with the requests that are already on their way. */
  drain(): void {
    this.#draining = true
    for (const connection of this.#open) connection.drain()
  }
}
