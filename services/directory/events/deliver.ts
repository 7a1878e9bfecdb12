import { randomUUID } from 'node:crypto'
import type { Log } from '../log.js'
import type { Directory } from '../model.js'
import type { SecretBox } from '../secrets.js'
import type { Delivery, Store } from '../store/contract.js'
import type { Poster } from './post.js'
import { signatureHeaders } from './sign.js'

/** Waits after the first, second, … failed attempt; the last one repeats, so no event is given up. */
const second = 1000
const minute = 60 * second
const hour = 60 * minute
const waits = [
  ...[2 * second, 5 * second, 15 * second, minute, 5 * minute, 30 * minute],
  ...[2 * hour, 6 * hour, 12 * hour, 24 * hour],
]
/** Longer than one attempt may take, so a lease outlives the call it covers. */
const leaseMs = 30_000
/** How often the outbox is looked through for work of other processes or of an earlier run. */
const pollMs = 5_000
const maxActive = 200

export interface Courier {
  /** Says that a directory has new events. Returns at once. */
  notify(directoryId: string): void
  close(): Promise<void>
}

export interface CourierParts {
  readonly store: Store
  readonly box: SecretBox
  readonly poster: Poster
  readonly log: Log
}

/**
 * Delivers the outbox in the background: per directory one event after the other in order, at least once. A failing
 * directory waits for its next attempt and holds up no other.
 */
export function startCourier({ store, box, poster, log }: CourierParts): Courier {
  const owner = randomUUID()
  const active = new Map<string, Promise<void>>()
  /** Directories told of while busy: they are looked at once more before they rest. */
  const again = new Set<string>()
  const timers = new Map<string, NodeJS.Timeout>()
  let closed = false

  function notify(directoryId: string): void {
    if (closed) return
    if (active.has(directoryId) || active.size >= maxActive) again.add(directoryId)
    else begin(directoryId)
  }

  function begin(directoryId: string): void {
    again.delete(directoryId)
    clearTimeout(timers.get(directoryId))
    timers.delete(directoryId)
    const work = deliverAll(directoryId)
      .catch(error =>
        log.error({ directory: directoryId, err: message(error) }, 'webhook delivery was interrupted'),
      )
      .finally(() => {
        active.delete(directoryId)
        const waiting = [...again].find(id => !active.has(id))
        if (waiting !== undefined && !closed) begin(waiting)
      })
    active.set(directoryId, work)
  }

  async function deliverAll(directoryId: string): Promise<void> {
    for (;;) {
      const now = Date.now()
      const delivery = await store.claimDelivery(directoryId, owner, now, now + leaseMs)
      // Without a claim another process is at work; the poll comes back to what it leaves behind.
      if (!delivery) return
      const { attempts, due, events } = delivery
      if (closed || events.length === 0 || due > now) {
        await store.reportDelivery(directoryId, owner, { attempts, due, until: 0 })
        if (!closed && events.length > 0) wakeAt(directoryId, due)
        return
      }
      const directory = await store.directory(directoryId)
      if (!directory || !(await deliverBatch(directory, delivery))) return
    }
  }

  /**
   * True when the whole batch was delivered and this process still holds the lease. What was delivered is written down when
   * the batch ends or the lease needs renewing, so a crash repeats at most one batch.
   */
  async function deliverBatch(directory: Directory, { events, attempts }: Delivery): Promise<boolean> {
    let delivered = 0
    let failures = attempts
    let reported = Date.now()
    const report = (due: number, until: number): Promise<boolean> => {
      reported = Date.now()
      return store.reportDelivery(directory.id, owner, { delivered, attempts: failures, due, until })
    }
    for (const event of events) {
      const problem = closed ? 'the service is closing' : await attempt(directory, event.id, event.body)
      if (problem !== undefined) {
        const due = closed ? Date.now() : Date.now() + backOff(failures++)
        const held = await report(due, 0)
        if (!closed) {
          if (held) wakeAt(directory.id, due)
          const next = new Date(due).toISOString()
          const fields = { directory: directory.id, event: event.id, attempt: failures, problem, next }
          log.warn(fields, 'webhook not delivered')
        }
        return false
      }
      delivered = event.sequence
      failures = 0
      const now = Date.now()
      if (now - reported > leaseMs / 3 && !(await report(0, now + leaseMs))) return false
    }
    return report(0, Date.now() + leaseMs)
  }

  /** Undefined when the event arrived, or when the directory has no webhook to send it to; else the problem. */
  async function attempt(
    { id, webhook }: Directory,
    eventId: string,
    body: string,
  ): Promise<string | undefined> {
    if (!webhook) return undefined
    try {
      const secret = box.open(webhook.secret, id, 'webhook')
      const status = await poster.post(
        webhook.endpoint,
        body,
        signatureHeaders(secret, eventId, body, Date.now()),
      )
      return status >= 200 && status < 300 ? undefined : `the receiver answered ${status}`
    } catch (error) {
      return message(error)
    }
  }

  function wakeAt(directoryId: string, due: number): void {
    clearTimeout(timers.get(directoryId))
    const wait = Math.max(0, due - Date.now())
    timers.set(directoryId, setTimeout(() => notify(directoryId), wait).unref())
  }

  async function poll(): Promise<void> {
    for (const id of await store.directoriesWithEvents()) {
      if (!active.has(id) && !timers.has(id)) notify(id)
    }
  }
  let poller: NodeJS.Timeout | undefined
  let polled: Promise<void>
  const keepPolling = (): void => {
    polled = poll()
      .catch(error => log.error({ err: message(error) }, 'the outbox cannot be read'))
      .finally(() => {
        if (!closed) poller = setTimeout(keepPolling, pollMs).unref()
      })
  }
  keepPolling()

  return {
    notify,
    async close() {
      closed = true
      clearTimeout(poller)
      for (const timer of timers.values()) clearTimeout(timer)
      poster.close()
      await Promise.all([polled, ...active.values()])
    },
  }
}

/** Half fixed, half random, so that many directories of one dead receiver do not return together. */
function backOff(failures: number): number {
  const wait = waits[Math.min(failures, waits.length - 1)] ?? 0
  return wait * (0.75 + Math.random() / 2)
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))
