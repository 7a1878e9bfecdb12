import { setImmediate as breathe } from 'node:timers/promises'
import type { Store } from '../store/contract.js'

/** Takes away, piece by piece, what removed directories held; other requests get their turn between. */
export async function purgeRemoved(store: Store): Promise<void> {
  while (await store.purgeSome()) await breathe()
}
