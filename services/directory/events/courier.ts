import { setInterval } from 'node:timers'
import { createDelivery, type DeliveryParts } from './deliver.js'

/** How often the outbox is looked through for work of other processes or of an earlier run. */
const pollMs = 5_000
const maxActive = 200
/** How long a call under way may take when the service ends; cut off, it is repeated at the next start. */
const graceMs = 3_000
/** Longest sleep before a claim asks anew: meanwhile another process may have mended what fails here. */
const longestSleep = 60_000

export interface Courier {
  /** Says that a directory has new events. Returns at once; in batch mode they wait for the next run. */
  notify(directoryId: string): void
  /** Tries a directory's events now, whenever their next attempt would be. Returns at once. */
  hasten(directoryId: string): void
  /** Begins a run through all directories with events. Returns at once. */
  processEvents(): void
  close(): Promise<void>
}

export interface CourierParts extends Omit<DeliveryParts, 'batchSize' | 'closing'> {
  /** In batch mode events wait for runs; `intervalMs` undefined: only for those that are asked for. */
  readonly batch: { readonly size: number; readonly intervalMs: number | undefined } | undefined
}

/** Delivers the outbox in the background. A failing directory waits for its next attempt and holds up no other. */
export function startCourier({ batch, ...parts }: CourierParts): Courier {
  const { store, log, poster } = parts
  const active = new Map<string, Promise<void>>()
  /** Directories told of while busy, and whether to hasten: they are looked at once more before they rest. */
  const again = new Map<string, boolean>()
  const timers = new Map<string, NodeJS.Timeout>()
  let closed = false
  const deliver = createDelivery({ ...parts, batchSize: batch?.size, closing: () => closed })

  function look(directoryId: string, hasten: boolean): void {
    if (closed) return
    if (active.has(directoryId) || active.size >= maxActive) {
      again.set(directoryId, hasten || again.get(directoryId) === true)
    } else begin(directoryId, hasten)
  }

  function begin(directoryId: string, hasten: boolean): void {
    again.delete(directoryId)
    clearTimeout(timers.get(directoryId))
    timers.delete(directoryId)
    const work = deliver(directoryId, hasten)
      .then(due => {
        if (due !== undefined) wakeAt(directoryId, due)
      })
      .catch(error => {
        log.error({ directory: directoryId, err: message(error) }, 'webhook delivery was interrupted')
        wakeAt(directoryId, Date.now() + pollMs)
      })
      .finally(() => {
        active.delete(directoryId)
        const next = [...again].find(([id]) => !active.has(id))
        if (next && !closed) begin(...next)
      })
    active.set(directoryId, work)
  }

  function wakeAt(directoryId: string, due: number): void {
    if (closed) return
    const wait = Math.min(longestSleep, Math.max(0, due - Date.now()))
    clearTimeout(timers.get(directoryId))
    const wake = (): void => {
      timers.delete(directoryId)
      look(directoryId, false)
    }
    timers.set(directoryId, setTimeout(wake, wait).unref())
  }

  let running: Promise<void> | undefined
  const run = async (): Promise<void> => {
    try {
      for (const id of await store.directoriesWithEvents()) {
        if (!timers.has(id)) look(id, false)
      }
    } catch (error) {
      log.error({ err: message(error) }, 'the outbox cannot be read')
    } finally {
      running = undefined
    }
  }
  const processEvents = (): void => {
    if (!closed) running ??= run()
  }

  const everyMs = batch ? batch.intervalMs : pollMs
  const timer = everyMs === undefined ? undefined : setInterval(processEvents, everyMs).unref()
  if (!batch) processEvents()

  return {
    // A directory that sleeps till its next attempt takes what is new along.
    notify: directoryId => {
      if (!batch && !timers.has(directoryId)) look(directoryId, false)
    },
    hasten: directoryId => look(directoryId, true),
    processEvents,
    async close() {
      closed = true
      clearInterval(timer)
      for (const waiting of timers.values()) clearTimeout(waiting)
      const cut = setTimeout(() => poster.close(), graceMs)
      await Promise.all([running, ...active.values()])
      clearTimeout(cut)
      poster.close()
    },
  }
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))
