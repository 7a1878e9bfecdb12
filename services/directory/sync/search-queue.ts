import { ScimError } from '../scim/error.js'
import { clientGone } from './yield.js'

/** Searches of one directory that may wait for the one that is running. */
const mostWaiting = 5

/**
 * Waits until no other long search of the directory is running; the caller must call the returned function at its end.
 * Throws 429 when too many wait already, and when the client leaves meanwhile.
 */
export type SearchQueue = (directoryId: string, signal?: AbortSignal) => Promise<() => void>

/** One long search at a time for each directory, within this process. */
export function createSearchQueue(): SearchQueue {
  /** Those that wait, by directory; an entry exists while a search is running. */
  const queues = new Map<string, Array<() => void>>()

  return async (directoryId, signal) => {
    if (signal?.aborted) throw clientGone()
    const waiting = queues.get(directoryId)
    if (waiting === undefined) queues.set(directoryId, [])
    else if (waiting.length < mostWaiting) await ownTurn(waiting, signal)
    else {
      const detail = `This directory is being searched, and ${mostWaiting} more searches are waiting: try again, or compare an attribute that has an index by eq.`
      throw new ScimError(429, detail)
    }
    return () => {
      const next = queues.get(directoryId)?.shift()
      if (next) next()
      else queues.delete(directoryId)
    }
  }
}

function ownTurn(waiting: Array<() => void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      waiting.splice(waiting.indexOf(begin), 1)
      reject(clientGone())
    }
    const begin = (): void => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    signal?.addEventListener('abort', leave, { once: true })
    waiting.push(begin)
  })
}
