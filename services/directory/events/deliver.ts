import { backOff, isFinal } from '../../../webhooks/retry.js'
import type { ServiceLog } from '../../log.js'
import type { DirectoryMetrics } from '../metrics.js'
import type { Directory, NamedWebhook } from '../model.js'
import type { Store } from '../store/contract.js'
import type { DeadLetter, Delivery, LogEntry, StoredEvent } from '../store/event-contract.js'
import type { CallResult, CallWebhook } from './call.js'
import { keepLease, leaseMs } from './lease.js'
import { type Message, toMessages } from './message.js'
import { ownerOf, storedId } from './queue.js'
import { isStale } from './retry.js'
import { isOwed, webhookOf } from './webhook.js'

/** Most events claimed at a time, and so repeated after a crash. */
const claimSize = 50
/** How long to wait before looking again at a queue that another process holds. */
const heldMs = 1000

export interface DeliveryParts {
  readonly store: Store
  readonly call: CallWebhook
  readonly log: ServiceLog
  readonly called: DirectoryMetrics['called']
  /** Events per call; undefined sends them one by one. */
  readonly batchSize: number | undefined
  /** True while the service is closing: events not sent by then wait for the next start. */
  closing(): boolean
}

/** Delivers the events in one webhook's queue (queue.ts). Returns the time (epoch ms) to come back, if any. */
export type Deliver = (queue: string, hasten: boolean) => Promise<number | undefined>

/** The results of one lease so far; what is gathered here is stored with the next report. */
interface Progress {
  delivered?: number
  dead: DeadLetter[]
  failedAgain: DeadLetter[]
  revived: string[]
  log: LogEntry[]
  attempts: number
  due: number
}

/** The directory and webhook whose queue is being delivered. */
interface Target {
  readonly directory: Directory
  readonly webhookId: string
  /** Undefined when the webhook has been removed. */
  readonly webhook: NamedWebhook | undefined
}

type OwedMessage<Event extends StoredEvent = StoredEvent> = Message<Event> & {
  readonly webhook: NamedWebhook
}

/**
 * Deliveries of one process: one message at a time per webhook, in order, at least once. Progress is stored when a
 * claim is finished or its lease is renewed, so a crash repeats at most one claim.
 */
export function createDelivery(parts: DeliveryParts): Deliver {
  const { store, call, log, called, batchSize, closing } = parts
  const limit = batchSize ?? claimSize

  /** Also finds a removed directory, which is kept until its removal has been delivered. */
  async function find(queue: string): Promise<Target | undefined> {
    const { directoryId, webhookId } = ownerOf(queue)
    const directory = (await store.directory(directoryId)) ?? (await store.deletedDirectory(directoryId))
    return directory && { directory, webhookId, webhook: webhookOf(directory, webhookId) }
  }

  async function deliver(queue: string, hasten: boolean): Promise<number | undefined> {
    // Events for a disabled webhook wait until it is enabled again.
    if ((await find(queue))?.webhook?.disabled) return undefined
    let fence: number | undefined
    for (;;) {
      const now = Date.now()
      const request = { now, until: now + leaseMs, limit, fence, hasten: hasten && fence === undefined }
      const claim = await store.claimDelivery(queue, request)
      if (claim.kind === 'nothing') return undefined
      if (claim.kind === 'held') return now + heldMs
      if (claim.kind === 'later') return claim.at
      fence = claim.delivery.fence
      const due = await workOff(queue, claim.delivery)
      if (due !== undefined) return due || undefined
    }
  }

  /** Returns undefined to continue, otherwise when to come back, or 0 for never. */
  async function workOff(queue: string, delivery: Delivery): Promise<number | undefined> {
    const { fence, attempts, due, replays, events } = delivery
    const progress: Progress = { dead: [], failedAgain: [], revived: [], log: [], attempts, due }
    const lease = keepLease(until => {
      const report = { ...progress, until }
      Object.assign(progress, { delivered: undefined, dead: [], failedAgain: [], revived: [], log: [] })
      tellOfDead([...report.dead, ...report.failedAgain])
      return store.reportDelivery(queue, fence, report)
    })
    // Looked up before each call: the webhook may be changed, disabled or removed while its events are being
    // delivered.
    let target: Target | undefined
    const goesOn = async (): Promise<boolean> => {
      if (closing() || !lease.held()) return false
      target = await find(queue)
      return target !== undefined && !target.webhook?.disabled
    }
    try {
      for (const message of toMessages(replays, batchSize)) {
        if (!(await goesOn())) break
        await replay(target as Target, message, progress)
      }
      for (const message of toMessages(events, batchSize)) {
        if (!(await goesOn()) || !(await advance(target as Target, message, progress))) break
      }
    } finally {
      lease.stop()
    }
    const isOver = closing() || !target || target.webhook?.disabled === true
    const drained = replays.length === 0 && events.length < limit
    const stop = isOver || drained || progress.due > Date.now()
    if (!(await lease.end(stop))) return Date.now() + heldMs
    if (isOver) return 0
    return stop ? progress.due : undefined
  }

  /** Makes one more attempt at dead letters; those of a removed webhook stay dead letters. */
  async function replay(target: Target, asked: Message<DeadLetter>, progress: Progress): Promise<void> {
    const message = owed(target, asked)
    progress.failedAgain.push(...asked.events.filter(event => !message?.events.includes(event)))
    if (!message) return
    const failures = Math.max(...message.events.map(event => event.attempts)) + 1
    const { problem } = await send(target, message, failures, progress)
    if (closing() && problem !== undefined) return
    if (problem === undefined) {
      progress.revived.push(...message.events.map(event => storedId(event.id, target.webhookId)))
      // The receiver is back: the events behind need not wait any longer.
      progress.due = 0
    } else progress.failedAgain.push(...buried(target, message.events, failures, problem))
  }

  /** True when the message is finished, delivered or dead; false when it has to wait for its next attempt. */
  async function advance(target: Target, claimed: Message, progress: Progress): Promise<boolean> {
    const done = (attempts: number): true => {
      progress.delivered = claimed.events.at(-1)?.sequence ?? 0
      progress.attempts = attempts
      progress.due = 0
      return true
    }
    const message = owed(target, claimed)
    if (!message) return done(0)
    const { events } = message
    const [first] = events
    if (progress.attempts > 0 && first && isStale(first.created, Date.now())) {
      progress.dead.push(...buried(target, events, 0, 'it waited too long behind other events that failed'))
      return done(progress.attempts)
    }
    const failures = progress.attempts + 1
    const { status, problem } = await send(target, message, failures, progress)
    if (problem === undefined) return done(0)
    if (closing()) return false
    if (isFinal(failures, status)) {
      progress.dead.push(...buried(target, events, failures, problem))
      return done(0)
    }
    progress.attempts = failures
    progress.due = Date.now() + backOff(failures)
    const next = new Date(progress.due).toISOString()
    const about = { directory: target.directory.id, webhook: target.webhookId }
    const fields = { ...about, message: message.id, attempt: failures, problem, next }
    log.warn(fields, 'webhook not delivered')
    return false
  }

  async function send(
    { directory, webhookId }: Target,
    { webhook, ...message }: OwedMessage,
    attempts: number,
    progress: Progress,
  ): Promise<CallResult> {
    const { tenant, product } = directory
    const { body, events } = message
    const created = new Date().toISOString()
    const answer = await call(directory.id, webhook, message)
    // A call cut off by closing is repeated after the next start, and counted then.
    if (closing() && answer.problem !== undefined) return answer
    called(answer.problem === undefined ? 'delivered' : 'failed', events.length)
    if (directory.logWebhookEvents) {
      const { status = null, problem = null } = answer
      const id = storedId(message.id, webhookId)
      const about = {
        id,
        directoryId: directory.id,
        webhookId,
        tenant,
        product,
        endpoint: webhook.endpoint,
        created,
      }
      progress.log.push({ ...about, status, delivered: problem === null, attempts, problem, payload: body })
    }
    return answer
  }

  /** The message without the events its webhook must not get; undefined when none are left. */
  function owed<Event extends StoredEvent>(
    { webhook }: Target,
    message: Message<Event>,
  ): OwedMessage<Event> | undefined {
    if (!webhook) return undefined
    const events = message.events.filter(event => isOwed(webhook, event))
    if (events.length === message.events.length) return { ...message, webhook }
    const [rest] = toMessages(events, batchSize)
    return rest && { ...rest, webhook }
  }

  /** Turns the events into dead letters. */
  function buried(
    { directory, webhookId }: Target,
    events: readonly StoredEvent[],
    attempts: number,
    problem: string,
  ): DeadLetter[] {
    called('dead', events.length)
    const { id: directoryId, tenant, product } = directory
    const failed = new Date().toISOString()
    const about = { directoryId, webhookId, tenant, product, attempts, problem, failed, replay: false }
    return events.map(({ id, sequence, created, body }) => {
      return { ...about, id: storedId(id, webhookId), sequence, created, body }
    })
  }

  function tellOfDead(dead: readonly DeadLetter[]): void {
    const last = dead.at(-1)
    if (!last) return
    const { id: event, directoryId: directory, webhookId: webhook, attempts, problem } = last
    const fields = { directory, webhook, events: dead.length, last: { event, attempts, problem } }
    log.error(fields, 'gave up on webhook events: they are dead letters now')
  }

  return deliver
}
