/** Limits on connections that no test meets by chance. */
import { TrustedProxies } from '../../../gateway/listen/client.js'
import type { DoorSettings } from '../../../gateway/listen/connection-cap.js'

export function wideDoor(narrower: Partial<DoorSettings> = {}): DoorSettings {
  const trusted = new TrustedProxies([])
  return {
    maxConnections: 10_000,
    maxConnectionsPerClient: 10_000,
    trustedProxies: () => trusted,
    ...narrower,
  }
}
