/** HTTP/2 from clients (RFC 9113), by one of two implementations. */
import type { Socket } from 'node:net'
import type { Http2Wire } from '../../config/words/words.js'
import { type Http2Handlers, Http2ServerConnections } from '../http2/server/connections.js'
import type { Arrival } from '../message.js'
import { KEEP_ALIVE_MS, REQUEST_TIMEOUT_MS } from './limits.js'
import { createNodeHttp2Listener } from './node-http2.js'
import { type RequestLimitSettings, RequestLimits } from './request-limits.js'

export interface Http2ListenerSettings extends RequestLimitSettings {
  /** `own` is the implementation in gateway/http2, `node` that of Node. */
  readonly http2: Http2Wire
  /** In ms, for a first request on a new connection, and for the rest of a head. */
  readonly headTimeout: number
}

export interface Http2Listener {
  /** Takes a connection that has negotiated HTTP/2, or that begins with it in the clear, where that is understood. */
  accept(socket: Socket, arrival: Arrival): void
  /** Closes the connection that has waited longest for a request. False if there is none. */
  closeLongest(): boolean
  /** Cuts what is in progress. */
  destroyAll(): void
  /** Accepts no new requests on any connection; each connection ends with its last request. */
  drain(): void
}

/** `clientOf` maps an address to the client that it counts for; undefined for a proxy, which carries many clients. */
export function createHttp2Listener(
  handlers: Http2Handlers,
  settings: Http2ListenerSettings,
  clientOf: (address: string) => string | undefined,
): Http2Listener {
  const limits = new RequestLimits(settings)
  const limitsAt = (address: string) => limits.of(clientOf(address))
  if (settings.http2 === 'node') return createNodeHttp2Listener(handlers, settings.headTimeout, limitsAt)
  return new Http2ServerConnections(
    handlers,
    {
      headTimeoutMs: settings.headTimeout,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      keepAliveMs: KEEP_ALIVE_MS,
    },
    limitsAt,
  )
}
