/** Limits on connections that no test reaches by accident. */
import { TrustedProxies } from '../../../gateway/listen/client.js'
import type { ListenerSettings } from '../../../gateway/listen/server.js'

export function wideDoor(narrower: Partial<ListenerSettings> = {}): ListenerSettings {
  const trusted = new TrustedProxies([])
  return {
    headTimeout: 10_000,
    http2: 'own',
    maxConnections: 10_000,
    maxConnectionsPerClient: 10_000,
    trustedProxies: () => trusted,
    proxyProtocol: false,
    ...narrower,
  }
}
