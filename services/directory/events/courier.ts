import { setInterval } from 'node:timers'
import type { Poster } from '../../../webhooks/post.js'
import type { Directory } from '../model.js'
import { StoreFailed } from '../store/contract.js'
import type { QueuedEvent } from '../store/event-contract.js'
import { createDelivery, type DeliveryParts } from './deliver.js'
import { queueOf } from './queue.js'
import { webhooksOf } from './webhook.js'

/** How often the outbox is searched for work of other processes or of an earlier run. */
const pollMs = 5_000
const maxActive = 200
/** How long a running call may take on close; when it is cut off, it is repeated at the next start. */
const graceMs = 3_000
/** Longest sleep before the queue is claimed again: another process may have cleared the failure meanwhile. */
const longestSleep = 60_000

export interface CourierParts extends Omit<DeliveryParts, 'batchSize' | 'closing'> {
  readonly poster: Pick<Poster, 'close'>
  /** In batch mode events wait for runs; with `intervalMs` undefined there are runs only on request. */
  readonly batch: { readonly size: number; readonly intervalMs: number | undefined } | undefined
}

export type Courier = ReturnType<typeof startCourier>

/** Delivers the outbox in the background. A failing webhook waits for its next attempt without delaying others. */
export function startCourier({ batch, ...parts }: CourierParts) {
  const { store, log, poster } = parts
  const active = new Map<string, Promise<void>>()
  /** Queues announced while they were active or all slots were taken, with `hasten`: they are looked at once more. */
  const again = new Map<string, boolean>()
  const timers = new Map<string, NodeJS.Timeout>()
  let closed = false
  const deliver = createDelivery({ ...parts, batchSize: batch?.size, closing: () => closed })

  /** The store's health check already reports database failures, so they are logged here at debug level only. */
  function report(error: unknown, fields: object, sentence: string): void {
    const write = error instanceof StoreFailed ? log.debug : log.error
    write({ ...fields, err: message(error) }, sentence)
  }

  function look(queue: string, hasten: boolean): void {
    if (closed) return
    if (active.has(queue) || active.size >= maxActive) {
      again.set(queue, hasten || again.get(queue) === true)
    } else begin(queue, hasten)
  }

  function begin(queue: string, hasten: boolean): void {
    again.delete(queue)
    clearTimeout(timers.get(queue))
    timers.delete(queue)
    const work = deliver(queue, hasten)
      .then(due => {
        if (due !== undefined) wakeAt(queue, due)
      })
      .catch(error => {
        report(error, { queue }, 'webhook delivery was interrupted')
        wakeAt(queue, Date.now() + pollMs)
      })
      .finally(() => {
        active.delete(queue)
        const next = [...again].find(([id]) => !active.has(id))
        if (next && !closed) begin(...next)
      })
    active.set(queue, work)
  }

  function wakeAt(queue: string, due: number): void {
    if (closed) return
    const wait = Math.min(longestSleep, Math.max(0, due - Date.now()))
    clearTimeout(timers.get(queue))
    const wake = (): void => {
      timers.delete(queue)
      look(queue, false)
    }
    timers.set(queue, setTimeout(wake, wait).unref())
  }

  let running: Promise<void> | undefined
  const run = async (): Promise<void> => {
    try {
      for (const id of await store.queuesWithEvents()) {
        if (!timers.has(id)) look(id, false)
      }
    } catch (error) {
      report(error, {}, 'the outbox cannot be read')
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
    /**
     * Announces new events in a queue (queue.ts). Returns at once; in batch mode the events wait for the next run, and a
     * queue that sleeps until its next attempt delivers them along with the old ones.
     */
    notify: (queue: string): void => {
      if (!batch && !timers.has(queue)) look(queue, false)
    },
    /** Tries a queue's events now, even if their next attempt is not due yet. Returns at once. */
    hasten: (queue: string): void => look(queue, true),
    /** Starts a run through all queues with events. Returns at once. */
    processEvents,
    async close(): Promise<void> {
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

/** Notifies the courier of the queues with new events. */
export function notifyAll(courier: Courier, directoryId: string, events: readonly QueuedEvent[]): void {
  const queues = events.flatMap(({ to }) => to.map(webhook => queueOf(directoryId, webhook)))
  for (const queue of new Set(queues)) courier.notify(queue)
}

/** Tries the events of all of a directory's webhooks now. */
export function hastenAll(courier: Courier, directory: Directory): void {
  for (const { id } of webhooksOf(directory)) courier.hasten(queueOf(directory.id, id))
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))
