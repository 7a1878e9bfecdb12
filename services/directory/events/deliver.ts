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

  /** True when the whole batch was delivered and this process still holds the lease. */
  async function deliverBatch(directory: Directory, { events, attempts }: Delivery): Promise<boolean> {
    let failures = attempts
    for (const event of events) {
      const problem = closed ? 'the service is closing' : await attempt(directory, event.id, event.body)
      const now = Date.now()
      if (problem !== undefined) {
        const due = closed ? now : now + backOff(failures)
        const report = { attempts: closed ? failures : failures + 1, due, until: 0 }
        if ((await store.reportDelivery(directory.id, owner, report)) && !closed) wakeAt(directory.id, due)
        if (closed) return false
        const next = new Date(due).toISOString()
        log.warn(
          { directory: directory.id, event: event.id, attempt: failures + 1, problem, next },
          'webhook not delivered',
        )
        return false
      }
      failures = 0
      const report = { delivered: event.sequence, attempts: 0, due: 0, until: now + leaseMs }
      if (!(await store.reportDelivery(directory.id, owner, report))) return false
    }
    return true
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
  const polling = (): void => {
    poll().catch(error => log.error({ err: message(error) }, 'the outbox cannot be read'))
  }
  const poller = setInterval(polling, pollMs).unref()
  polling()

  return {
    notify,
    async close() {
      closed = true
      clearInterval(poller)
      for (const timer of timers.values()) clearTimeout(timer)
      poster.close()
      await Promise.all(active.values())
    },
  }
}

/** Half fixed, half random, so that many directories of one dead receiver do not return together. */
function backOff(failures: number): number {
  const wait = waits[Math.min(failures, waits.length - 1)] ?? 0
  return wait * (0.75 + Math.random() / 2)
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))
