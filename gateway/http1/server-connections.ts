import type { Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import type { Arrival, IncomingRequest, OutgoingResponse, Takeover } from '../message.js'
import { Deadlines } from './deadlines.js'
import { ServerConnection } from './server-connection.js'
import { mostStalls, Stalls } from './stalls.js'

export interface ServerHandlers {
  request(req: IncomingRequest, res: OutgoingResponse): void
  /**
   * A request for a WebSocket. A refusal through `res` ends the connection. After `takeOver` the caller must close the
   * connection, and `res` closes with it.
   */
  upgrade(req: IncomingRequest, res: OutgoingResponse, takeOver: () => Takeover): void
  /** Takes a connection that begins with HTTP/2, with all its bytes. Without this they are refused. */
  http2?(socket: Socket, arrival: Arrival): void
  /**
   * The listener itself responded, with `id` as the request id, because no valid request came, or none in time. `peer`
   * is the client's address.
   */
  refused?(code: ErrorCode, id: string, peer: string): void
  /** A handler threw; the connection of its request has been destroyed. */
  failed?(error: unknown): void
}

export interface ServerSettings {
  /** Most bytes of a head that are read. Handlers enforce the actual, lower limit, so that they can respond. */
  readonly maxHead: number
  /** For a whole head, from its first byte; also for the first byte on a new connection. */
  readonly headTimeoutMs: number
  /** For a request with its body. */
  readonly requestTimeoutMs: number
  /** How long an idle connection waits for the next request. */
  readonly keepAliveMs: number
}

/** The HTTP/1.1 connections of one port. */
export class ServerConnections {
  readonly handlers: ServerHandlers
  readonly settings: ServerSettings
  readonly deadlines = new Deadlines()
  /** Connections on which much has been sent behind the request in progress. */
  readonly stalls = new Stalls(mostStalls())
  /** Value of the Keep-Alive field. */
  readonly keepAlive: string
  draining = false
  readonly #open = new Set<ServerConnection>()
  /** Connections without a first request, the oldest first. */
  readonly #fresh = new Set<ServerConnection>()
  /** Connections that wait for their next request, the longest idle first. */
  readonly #idle = new Set<ServerConnection>()

  constructor(handlers: ServerHandlers, settings: ServerSettings) {
    this.handlers = handlers
    this.settings = settings
    this.keepAlive = `timeout=${Math.floor(settings.keepAliveMs / 1000)}`
  }

  /** Accepts a connection: plain TCP, or TLS after its handshake. */
  accept(socket: Socket, arrival: Arrival): void {
    const peer = {
      ...arrival,
      localPort: socket.localPort ?? 0,
      encrypted: 'encrypted' in socket,
    }
    const connection = new ServerConnection(socket, peer, this)
    this.#open.add(connection)
    this.#fresh.add(connection)
    this.deadlines.add(connection)
    if (this.draining) connection.closeSoon()
  }

  /** True if the connection has yet to send its first request. */
  isFresh(connection: ServerConnection): boolean {
    return this.#fresh.has(connection)
  }

  /** True if it may still do so. */
  expectsRequest(connection: ServerConnection): boolean {
    return !this.draining && this.#fresh.has(connection)
  }

  /** A request is in progress on the connection, or the connection is ending. */
  busy(connection: ServerConnection): void {
    if (!this.#idle.delete(connection)) this.#fresh.delete(connection)
  }

  /** The connection waits for its next request. */
  idle(connection: ServerConnection): void {
    this.#idle.add(connection)
  }

  closed(connection: ServerConnection): void {
    this.busy(connection)
    this.#open.delete(connection)
    this.deadlines.delete(connection)
  }

  /** Closes the connection that has been idle longest, or else the oldest without a request. False if there is none. */
  closeLongest(): boolean {
    const [longest = firstOf(this.#fresh)] = this.#idle
    longest?.close()
    return longest !== undefined
  }

  /** From now on every connection ends with its next response, or soon if no request comes. */
  drain(): void {
    this.draining = true
    for (const connection of [...this.#idle, ...this.#fresh]) connection.closeSoon()
  }

  destroyAll(): void {
    for (const connection of this.#open) connection.destroy()
  }
}

function firstOf<T>(set: ReadonlySet<T>): T | undefined {
  const [first] = set
  return first
}
