import type { DeadLetter, LogEntry, StoredEvent } from './event-contract.js'
import type { Leased } from './mongodb-leases.js'

/**
 * An event, in the feed and, until it is delivered, in the outbox. `_id` is made of directory and sequence; in the
 * outbox `directory` is a queue (events/queue.ts), also within `_id`.
 */
export interface EventDocument {
  _id: string
  directory: string
  sequence: number
  event: string
  created: string
  body: string
}

/** A lease on a queue's deliveries; its `directory` is a queue (events/queue.ts). */
export interface LeaseDocument extends Leased {
  /** Sequence up to which events are delivered or dead. */
  delivered: number
  attempts: number
  due: number
}

/** A dead letter or log entry as it is stored, with `_id` and `directory` for its ids. */
type Stored<Item> = Omit<Item, 'id' | 'directoryId'> & {
  _id: string
  directory: string
}
export type DeadDocument = Stored<DeadLetter>
export type LogDocument = Stored<LogEntry>

/** The event of a document. */
export const toEvent = ({ event, sequence, created, body }: EventDocument): StoredEvent => ({
  ...{ id: event, sequence, created, body },
})

/** The dead letter or log entry of a document. */
export const fromDocument = <Item>({ _id: id, directory: directoryId, ...rest }: Stored<Item>): Item =>
  ({ id, directoryId, ...rest }) as Item

/** The document of a dead letter or log entry. */
export const toDocument = <Item extends { id: string; directoryId: string }>({
  id: _id,
  directoryId: directory,
  ...rest
}: Item): Stored<Item> => ({ _id, directory, ...rest }) as Stored<Item>
