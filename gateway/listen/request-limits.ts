import type { ClientLimits } from '../http2/server/streams.js'
import { type Cap, Shares } from './client-shares.js'
import { ResetsByClient } from './idle-frames.js'

/** Fields of an ordinary request. As a field costs 500 bytes of memory, requests with more count as several. */
const ORDINARY_FIELDS = 32

export interface RequestLimitSettings {
  readonly maxConnections: number
  readonly maxConnectionsPerClient: number
  /** A request was refused for this limit. */
  turnedAway?(cap: Cap): void
}

/**
 * Limits of HTTP/2 clients on all their connections. Requests in progress have the limits of connections: over HTTP/1.1
 * each has a connection of its own, and here it costs as much memory, or more with many fields.
 */
export class RequestLimits {
  readonly #settings: RequestLimitSettings
  readonly #requests: Shares
  readonly #resets = new ResetsByClient()

  constructor(settings: RequestLimitSettings) {
    this.#settings = settings
    this.#requests = new Shares(settings.maxConnections, settings.maxConnectionsPerClient)
  }

  /** Those of one client; undefined for a trusted proxy, which carries many. */
  of(client: string | undefined): ClientLimits {
    return {
      carriesMany: client === undefined,
      take: fields => this.#take(client, fields),
      giveBack: places => this.#requests.giveBack(client, places),
      countReset: () => client === undefined || this.#resets.spend(client),
    }
  }

  #take(client: string | undefined, fields: number): number {
    const { maxConnections, maxConnectionsPerClient } = this.#settings
    const wanted = Math.max(1, Math.ceil(fields / ORDINARY_FIELDS))
    const places = Math.min(wanted, maxConnections, maxConnectionsPerClient)
    const cap = this.#requests.capOf(client, places)
    if (cap !== undefined) {
      this.#settings.turnedAway?.(cap)
      return 0
    }
    this.#requests.take(client, places)
    return places
  }
}
