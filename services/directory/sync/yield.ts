import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { ScimError } from '../scim/error.js'

/** Milliseconds that a loop may block the process. */
const slice = 20

/** Ends a search whose client has gone; nobody receives it. */
export const clientGone = (): ScimError => new ScimError(499, 'The client has gone.')

/**
 * Call this between the steps of a long loop: it yields to other requests when the time slice is used up, and throws
 * once the signal says that the client has gone.
 */
export function createYield(signal?: AbortSignal): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (signal?.aborted) throw clientGone()
    if (performance.now() - since <= slice) return
    await yieldToOthers()
    since = performance.now()
  }
}
