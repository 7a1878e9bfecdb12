import type { Log } from '../log.js'
import type { Metrics } from '../metrics.js'
import type { Directory } from '../model.js'
import type { SecretBox } from '../secrets.js'
import type { Store } from '../store/contract.js'
import type { DeadLetter, Delivery, LogEntry, StoredEvent } from '../store/event-contract.js'
import { keepLease, leaseMs } from './lease.js'
import { type Message, toMessages } from './message.js'
import type { Poster } from './post.js'
import { backOff, isFinal, isStale } from './retry.js'
import { signatureHeaders } from './sign.js'
import { signingSecrets } from './webhook.js'

/** Most events that are handed out at a time, and so repeated after a crash. */
const claimSize = 50
/** When to look again whether another process has left something behind. */
const heldMs = 1000

export interface DeliveryParts {
  readonly store: Store
  readonly box: SecretBox
  readonly poster: Poster
  readonly log: Log
  readonly called: Metrics['called']
  /** Events in one call; undefined sends them one by one. */
  readonly batchSize: number | undefined
  /** True when the service is ending: what was not sent by then waits for its next start. */
  closing(): boolean
}

/** Delivers what waits for one directory's webhook. Gives the time (epoch ms) to come back, if there is one. */
export type Deliver = (directoryId: string, hasten: boolean) => Promise<number | undefined>

/** How the messages of one lease went so far; what is gathered here goes to the store with the next report. */
interface Progress {
  delivered?: number
  dead: DeadLetter[]
  revived: string[]
  log: LogEntry[]
  attempts: number
  due: number
}

interface Answer {
  /** Undefined when none came. */
  readonly status?: number
  /** Undefined when the message arrived. */
  readonly problem?: string
}

/**
 * Deliveries of one process: per directory one message after the other in order, at least once. What was delivered is
 * written down when a claim is worked off or its lease is renewed, so a crash repeats at most one claim.
 */
export function createDelivery(parts: DeliveryParts): Deliver {
  const { store, box, poster, log, called, batchSize, closing } = parts
  const limit = batchSize ?? claimSize

  async function deliver(directoryId: string, hasten: boolean): Promise<number | undefined> {
    let fence: number | undefined
    for (;;) {
      const now = Date.now()
      const request = { now, until: now + leaseMs, limit, fence, hasten: hasten && fence === undefined }
      const claim = await store.claimDelivery(directoryId, request)
      if (claim.kind === 'nothing') return undefined
      if (claim.kind === 'held') return now + heldMs
      if (claim.kind === 'later') return claim.at
      const directory = await store.directory(directoryId)
      // Removed meanwhile: what it held is being purged.
      if (!directory) return undefined
      fence = claim.delivery.fence
      const due = await workOff(directory, claim.delivery)
      if (due !== undefined) return due || undefined
    }
  }

  /** Undefined to go on; else when to come back, or 0 for not at all. */
  async function workOff(directory: Directory, delivery: Delivery): Promise<number | undefined> {
    const { fence, attempts, due, replays, events } = delivery
    const progress: Progress = { dead: [], revived: [], log: [], attempts, due }
    const lease = keepLease(until => {
      const report = { ...progress, until }
      Object.assign(progress, { delivered: undefined, dead: [], revived: [], log: [] })
      tellOfDead(directory.id, report.dead)
      return store.reportDelivery(directory.id, fence, report)
    })
    try {
      for (const message of toMessages(replays, batchSize)) {
        if (closing() || !lease.held()) break
        await replay(directory, message, progress)
      }
      for (const message of toMessages(events, batchSize)) {
        if (closing() || !lease.held() || !(await advance(directory, message, progress))) break
      }
    } finally {
      lease.stop()
    }
    const drained = replays.length === 0 && events.length < limit
    const stop = closing() || drained || progress.due > Date.now()
    if (!(await lease.end(stop))) return Date.now() + heldMs
    if (closing()) return 0
    return stop ? progress.due : undefined
  }

  /** One more attempt at dead letters. */
  async function replay(
    directory: Directory,
    message: Message<DeadLetter>,
    progress: Progress,
  ): Promise<void> {
    const failures = Math.max(...message.events.map(event => event.attempts)) + 1
    const { problem } = await send(directory, message, failures, progress)
    if (closing() && problem !== undefined) return
    if (problem === undefined) {
      progress.revived.push(...message.events.map(event => event.id))
      // The receiver is back: what waits behind need not wait any longer.
      progress.due = 0
    } else bury(directory, message.events, failures, problem, progress)
  }

  /** True when the message is done with, delivered or dead; false when it has to wait for its next attempt. */
  async function advance(directory: Directory, message: Message, progress: Progress): Promise<boolean> {
    const { events } = message
    const done = (attempts: number): true => {
      progress.delivered = events.at(-1)?.sequence ?? 0
      progress.attempts = attempts
      progress.due = 0
      return true
    }
    const [first] = events
    if (progress.attempts > 0 && first && isStale(first.created, Date.now())) {
      bury(directory, events, 0, 'it waited too long behind others that failed', progress)
      return done(progress.attempts)
    }
    const failures = progress.attempts + 1
    const { status, problem } = await send(directory, message, failures, progress)
    if (problem === undefined) return done(0)
    if (closing()) return false
    if (isFinal(failures, status)) {
      bury(directory, events, failures, problem, progress)
      return done(0)
    }
    progress.attempts = failures
    progress.due = Date.now() + backOff(failures)
    const next = new Date(progress.due).toISOString()
    const fields = { directory: directory.id, message: message.id, attempt: failures, problem, next }
    log.warn(fields, 'webhook not delivered')
    return false
  }

  async function send(
    directory: Directory,
    { id, body, events }: Message,
    attempts: number,
    progress: Progress,
  ): Promise<Answer> {
    const { webhook, tenant, product } = directory
    // Taken away meanwhile: nobody waits for this.
    if (!webhook) return {}
    const created = new Date().toISOString()
    const answer = await post(directory.id, webhook, id, body)
    // One that the end of the service cut off is repeated at its next start, and counted then.
    if (closing() && answer.problem !== undefined) return answer
    called(answer.problem === undefined ? 'delivered' : 'failed', events.length)
    if (directory.logWebhookEvents) {
      const { status = null, problem = null } = answer
      const about = { id, directoryId: directory.id, tenant, product, endpoint: webhook.endpoint, created }
      progress.log.push({ ...about, status, delivered: problem === null, attempts, problem, payload: body })
    }
    return answer
  }

  async function post(
    directoryId: string,
    webhook: NonNullable<Directory['webhook']>,
    id: string,
    body: string,
  ): Promise<Answer> {
    try {
      const secrets = signingSecrets(box, directoryId, webhook)
      const status = await poster.post(
        webhook.endpoint,
        body,
        signatureHeaders(secrets, id, body, Date.now()),
      )
      return status >= 200 && status < 300
        ? { status }
        : { status, problem: `the receiver answered ${status}` }
    } catch (error) {
      return { problem: error instanceof Error ? error.message : String(error) }
    }
  }

  function bury(
    { id: directoryId, tenant, product }: Directory,
    events: readonly StoredEvent[],
    attempts: number,
    problem: string,
    progress: Progress,
  ): void {
    called('dead', events.length)
    const about = { directoryId, tenant, product, attempts, problem, failed: new Date().toISOString() }
    for (const { id, sequence, created, body } of events) {
      progress.dead.push({ ...about, id, sequence, created, body, replay: false })
    }
  }

  function tellOfDead(directoryId: string, dead: readonly DeadLetter[]): void {
    const last = dead.at(-1)
    if (!last) return
    const { id: event, attempts, problem } = last
    const fields = { directory: directoryId, events: dead.length, last: { event, attempts, problem } }
    log.error(fields, 'webhook events given up: they are dead letters now')
  }

  return deliver
}
