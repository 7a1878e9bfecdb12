import type { AddressInfo } from 'node:net'
import { ServerConnections, type ServerHandlers } from '../http1/server-connections.js'
import type { Http2Handlers } from '../http2/server/connections.js'
import type { CertificatePair } from './certificate.js'
import { clientBehind } from './client.js'
import { createDoor, type DoorSettings } from './connection-cap.js'
import { createHttp2Listener, type Http2ListenerSettings } from './http2.js'
import { KEEP_ALIVE_MS, MAX_HEAD_READ, REQUEST_TIMEOUT_MS } from './limits.js'
import { createTlsFront, type TlsSettings } from './tls.js'

export type Handlers = ServerHandlers & Http2Handlers

export interface ListenerSettings extends DoorSettings, Http2ListenerSettings {
  /** In ms, for a request head from its first byte, and for the first byte on a new connection. */
  readonly headTimeout: number
}

export interface Listener {
  /** Resolves to the actual address; port 0 picks a free one. */
  start(host: string, port: number): Promise<{ host: string; port: number }>
  /** Accepts no more connections, lets requests finish, and cuts those left after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>
  /** Number of open client connections. */
  readonly connections: number
  /** For new connections; existing ones continue. */
  replaceCertificate(pair: CertificatePair): void
}

/** The data port: a strict HTTP server that rejects invalid HTTP by itself. With `tls` it accepts TLS only. */
export function createListener(handlers: Handlers, settings: ListenerSettings, tls?: TlsSettings): Listener {
  const http2 = createHttp2Listener(handlers, settings, address =>
    clientBehind(address, settings.trustedProxies()),
  )
  // Over TLS, and by Node's implementation, HTTP/2 has to be negotiated.
  const inClear: Pick<ServerHandlers, 'http2'> =
    tls === undefined && settings.http2 === 'own'
      ? { http2: (socket, { address }) => http2.accept(socket, { address, fingerprints: undefined }) }
      : {}
  const http1 = new ServerConnections(
    { ...handlers, ...inClear },
    {
      maxHead: MAX_HEAD_READ,
      headTimeoutMs: settings.headTimeout,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      keepAliveMs: KEEP_ALIVE_MS,
    },
  )
  const front =
    tls &&
    createTlsFront(tls, {
      http1: (socket, arrival) => http1.accept(socket, arrival),
      http2: (socket, arrival) => http2.accept(socket, arrival),
      refused: (code, id, peer) => handlers.refused?.(code, id, peer),
    })
  const door = createDoor(settings, tls !== undefined, {
    enter(socket, address) {
      if (front === undefined) http1.accept(socket, { address, fingerprints: undefined })
      else front.accept(socket, address)
    },
    closeIdle: () => http1.closeLongest() || http2.closeLongest() || front?.closeLongest() === true,
    refused: (code, id, peer) => handlers.refused?.(code, id, peer),
  })

  return {
    start(host, port) {
      return new Promise((resolve, reject) => {
        door.server.once('error', reject)
        door.server.listen(port, host, () => {
          door.server.off('error', reject)
          const address = door.server.address() as AddressInfo
          resolve({ host: address.address, port: address.port })
        })
      })
    },
    drain(deadlineMs) {
      return new Promise(resolve => {
        const deadline = setTimeout(() => {
          http1.destroyAll()
          http2.destroyAll()
          front?.closeAllConnections()
        }, deadlineMs)
        door.server.close(() => {
          clearTimeout(deadline)
          resolve()
        })
        http1.drain()
        http2.drain()
        front?.drain()
      })
    },
    get connections() {
      return door.connections
    },
    replaceCertificate: pair => front?.replaceCertificate(pair),
  }
}
