import type { ListPage, Scope } from '../model.js'

/** An event as it was committed: `body` is the exact JSON text that is delivered. */
export interface StoredEvent {
  readonly id: string
  readonly sequence: number
  /** ISO 8601, UTC. */
  readonly created: string
  readonly body: string
}

/** An event of a change, with the ids of the webhooks that it is queued for; it is in the feed in any case. */
export interface QueuedEvent extends StoredEvent {
  readonly to: readonly string[]
}

/** An event that was given up after its last attempt, kept until it is replayed or expires. */
export interface DeadLetter extends StoredEvent {
  /** The event's id, followed, for any but the first webhook, by a dot and the webhook's id. */
  readonly id: string
  readonly directoryId: string
  readonly webhookId: string
  readonly tenant: string
  readonly product: string
  readonly attempts: number
  /** Why the last attempt failed. */
  readonly problem: string
  /** Time of the last attempt (ISO 8601, UTC). */
  readonly failed: string
  /** True from the request for a replay until its attempt. */
  readonly replay: boolean
}

/** One webhook message in the log of a directory with `log_webhook_events`; all its attempts are one entry. */
export interface LogEntry {
  /** The message's `webhook-id`: an event's or a batch's id, with the webhook's id appended as in a dead letter's. */
  readonly id: string
  readonly directoryId: string
  readonly webhookId: string
  readonly tenant: string
  readonly product: string
  readonly endpoint: string
  /** Time of the first attempt (ISO 8601, UTC). */
  readonly created: string
  /** Status of the last response; null when there was none. */
  readonly status: number | null
  readonly delivered: boolean
  readonly attempts: number
  readonly problem: string | null
  /** JSON text: an event, or an array of events. */
  readonly payload: string
}

/** A claim on the work of one webhook's queue. */
export interface ClaimRequest {
  /** Epoch ms. */
  readonly now: number
  /** When the lease is to end. */
  readonly until: number
  /** Most events, and most replays, to return. */
  readonly limit: number
  /** The lease that this process already holds. */
  readonly fence?: number | undefined
  /** Does not wait for the time of the next attempt. */
  readonly hasten?: boolean | undefined
}

/** The work that a process has leased. */
export interface Delivery {
  /** Higher than that of every earlier lease; a report with a fence that is not the newest is refused. */
  readonly fence: number
  /** Failed attempts at the first event. */
  readonly attempts: number
  /** Not before this time (epoch ms). */
  readonly due: number
  /** In order, from the first that is neither delivered nor dead. */
  readonly events: readonly StoredEvent[]
  /** Dead letters to try once more, in order. */
  readonly replays: readonly DeadLetter[]
}

/** A claim that finds nothing to do now releases the lease that it came with. */
export type Claim =
  | { readonly kind: 'nothing' }
  /** Another process is delivering. */
  | { readonly kind: 'held' }
  | { readonly kind: 'later'; readonly at: number }
  | { readonly kind: 'delivery'; readonly delivery: Delivery }

/** The progress of a delivery. */
export interface DeliveryReport {
  /** Events up to this sequence are delivered or dead. */
  readonly delivered?: number | undefined
  /** Events that become dead letters. */
  readonly dead?: readonly DeadLetter[]
  /** Dead letters whose replay has failed: they stay dead letters, unless they were deleted meanwhile. */
  readonly failedAgain?: readonly DeadLetter[]
  /** Ids of dead letters that a replay delivered. */
  readonly revived?: readonly string[]
  readonly log?: readonly LogEntry[]
  readonly attempts: number
  readonly due: number
  /** When the lease ends (epoch ms); 0 gives it back. */
  readonly until: number
}

/** The database operations for events; part of the Store. */
export interface EventStore {
  /**
   * Events that are neither delivered nor dead, counted for each webhook, in all directories; those of changes in
   * progress may be missing.
   */
  waitingEvents(): Promise<number>
  /** Queues (queue.ts) with events or replays to deliver. */
  queuesWithEvents(): Promise<string[]>
  /** Leases the work of a queue to this process, under a new fence. */
  claimDelivery(queue: string, request: ClaimRequest): Promise<Claim>
  /** False, with nothing changed, when another process has taken the lease. */
  reportDelivery(queue: string, fence: number, report: DeliveryReport): Promise<boolean>

  /**
   * Events after the sequence, delivered or not, in order and without gaps; `last` is the sequence of the last event
   * there ever was.
   */
  feed(
    directoryId: string,
    after: number,
    limit: number,
  ): Promise<{ readonly last: number; readonly events: readonly StoredEvent[] }>

  /** Newest failure first, then by id. */
  deadLetters(scope: Scope, page: ListPage): Promise<DeadLetter[]>
  deadLetter(id: string): Promise<DeadLetter | undefined>
  /** False when there is none. */
  deleteDeadLetter(id: string): Promise<boolean>
  /**
   * Marks dead letters of the directory for one more attempt: those of a webhook, or the one with that id. Returns how
   * many.
   */
  replay(directoryId: string, which: Replayable): Promise<number>

  /** Newest first, then by id. */
  webhookLog(scope: Scope, page: ListPage): Promise<LogEntry[]>
  webhookLogEntry(id: string): Promise<LogEntry | undefined>
  deleteWebhookLog(scope: Scope): Promise<void>

  /**
   * Deletes some of what is older than these times (ISO 8601, UTC), except undelivered events, and what the store kept
   * of deleted things for an hour. False when nothing is left.
   */
  pruneSome(before: Readonly<Record<'log' | 'events' | 'dead', string>>): Promise<boolean>
}

/** A webhook's dead letters after a sequence, or a single one. */
export type Replayable = { readonly webhookId: string; readonly after: number } | { readonly id: string }

/** Most rows of each kind that one call of `pruneSome` deletes. */
export const pruneBatch = 1000
