import { setInterval } from 'node:timers'
import type { ServiceLog } from '../../log.js'
import type { EventCallback } from '../events/event.js'
import type { PullState, Store } from '../store/contract.js'
import type { Pull, PullOptions } from './pull.js'

/** Directories that one process pulls at a time, so that a slow or failing one does not hold up others. */
const atOnce = 16
/** Longest time between two checks for directories that are due. */
const lookMs = 60_000

export interface Pulled extends PullState {
  readonly directoryId: string
}

export interface PullerParts {
  readonly store: Store
  readonly pull: Pull
  readonly intervalMs: number | undefined
  readonly log: ServiceLog
  readonly abort: () => void
}

export type Puller = ReturnType<typeof startPuller>

/** Pulls on request, and by itself once a directory's last pull is older than the interval. */
export function startPuller({ store, pull, intervalMs, log, abort }: PullerParts) {
  const queue: Array<() => Promise<void>> = []
  const active = new Set<Promise<void>>()
  /** Directories that are queued or being pulled. */
  const busy = new Set<string>()
  let closed = false

  function next(): void {
    while (active.size < atOnce) {
      const work = queue.shift()
      if (!work) return
      const running = work().finally(() => {
        active.delete(running)
        next()
      })
      active.add(running)
    }
  }

  /** Undefined when this process is already pulling the directory, or when the pull fails to start. */
  async function enqueue(directoryId: string, options: PullOptions): Promise<PullState | undefined> {
    if (closed || busy.has(directoryId)) return undefined
    busy.add(directoryId)
    return new Promise(resolve => {
      queue.push(async () => {
        try {
          resolve(closed ? undefined : await pull(directoryId, options))
        } catch (error) {
          log.error({ directory: directoryId, err: (error as Error).message }, 'external pull failed')
          resolve(undefined)
        } finally {
          busy.delete(directoryId)
        }
      })
      next()
    })
  }

  const look = async (): Promise<void> => {
    if (intervalMs === undefined) return
    try {
      const idleSince = Date.now() - intervalMs
      for (const id of await store.pulledDirectories()) void enqueue(id, { idleSince })
    } catch (error) {
      log.error({ err: (error as Error).message }, 'external directories cannot be listed')
    }
  }
  const every = intervalMs === undefined ? undefined : Math.min(intervalMs, lookMs)
  const timer = every === undefined ? undefined : setInterval(look, every).unref()
  void look()

  return {
    /** Starts to pull one directory, or all connected ones; resolves before the work is done. */
    async begin(directoryId: string | undefined, options: PullOptions): Promise<void> {
      const ids = directoryId === undefined ? await store.pulledDirectories() : [directoryId]
      for (const id of ids) void enqueue(id, options)
    },
    /** Pulls all connected directories and returns those that were pulled. */
    async pullAll(callback: EventCallback | undefined): Promise<Pulled[]> {
      const ids = await store.pulledDirectories()
      const states = await Promise.all(ids.map(id => enqueue(id, { callback })))
      return states.flatMap((state, index) => (state ? [{ directoryId: ids[index] ?? '', ...state }] : []))
    },
    async close(): Promise<void> {
      closed = true
      clearInterval(timer)
      abort()
      while (active.size > 0) await Promise.all(active)
    },
  }
}
