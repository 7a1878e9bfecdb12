import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { Store } from '../store/contract.js'

/** Deletes the data of removed directories in pieces, yielding to other requests. */
export async function purgeRemoved(store: Store): Promise<void> {
  while (await store.purgeSome()) await yieldToOthers()
}
