import type { Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import type { Fingerprints, IncomingRequest, OutgoingResponse, Takeover } from '../message.js'
import { Deadlines } from './deadlines.js'
import { ServerConnection } from './server-connection.js'

export interface ServerHandlers {
  request(req: IncomingRequest, res: OutgoingResponse): void
  /**
   * A request for a WebSocket. It is refused through `res`, which ends the connection; whoever takes the connection
   * over owns its end instead, and `res` closes with it.
   */
  upgrade(req: IncomingRequest, res: OutgoingResponse, takeOver: () => Takeover): void
  /**
   * The listener answered by itself, under the id `id`, where there was no request: what came was none, or not in time.
   * `peer` is the address of the other end.
   */
  refused?(code: ErrorCode, id: string, peer: string): void
  /** A handler threw; the connection of its request is cut. */
  failed?(error: unknown): void
}

export interface ServerSettings {
  /** Bytes of a head that are read, so that it can be answered. */
  readonly maxHead: number
  /** For a head, from its first byte; also for the first byte of a new connection. */
  readonly headTimeoutMs: number
  /** For a request with its body. */
  readonly requestTimeoutMs: number
  /** For the next request. */
  readonly keepAliveMs: number
}

/** The HTTP/1.1 connections of one port. */
export class ServerConnections {
  readonly handlers: ServerHandlers
  readonly settings: ServerSettings
  readonly deadlines = new Deadlines()
  /** What Keep-Alive says. */
  readonly keepAlive: string
  draining = false
  readonly #open = new Set<ServerConnection>()
  /** They have yet to send a first request; in the order they came. */
  readonly #fresh = new Set<ServerConnection>()
  /** They wait for their next request, the longest first. */
  readonly #idle = new Set<ServerConnection>()

  constructor(handlers: ServerHandlers, settings: ServerSettings) {
    this.handlers = handlers
    this.settings = settings
    this.keepAlive = `timeout=${Math.floor(settings.keepAliveMs / 1000)}`
  }

  /** Takes a connection: of TCP, or one whose TLS handshake is over. */
  accept(socket: Socket, fingerprints?: Fingerprints): void {
    const peer = {
      address: socket.remoteAddress ?? '',
      localPort: socket.localPort ?? 0,
      encrypted: 'encrypted' in socket,
      fingerprints,
    }
    const connection = new ServerConnection(socket, peer, this)
    this.#open.add(connection)
    this.#fresh.add(connection)
    this.deadlines.add(connection)
  }

  isFresh(connection: ServerConnection): boolean {
    return this.#fresh.has(connection)
  }

  /** A request is under way on it, or it ends. */
  busy(connection: ServerConnection): void {
    if (!this.#idle.delete(connection)) this.#fresh.delete(connection)
  }

  /** It has answered, and may be asked again. */
  idle(connection: ServerConnection): void {
    this.#idle.add(connection)
  }

  closed(connection: ServerConnection): void {
    this.busy(connection)
    this.#open.delete(connection)
    this.deadlines.delete(connection)
  }

  /** Ends the one that is missed the least: that has waited longest. False when there is none. */
  closeLongest(): boolean {
    const [longest = firstOf(this.#fresh)] = this.#idle
    longest?.close()
    return longest !== undefined
  }

  /** Every connection ends with its next answer, or soon, where no request comes. */
  drain(): void {
    this.draining = true
    for (const connection of this.#idle) connection.closeSoon()
  }

  destroyAll(): void {
    for (const connection of this.#open) connection.destroy()
  }
}

function firstOf<T>(set: ReadonlySet<T>): T | undefined {
  const [first] = set
  return first
}
