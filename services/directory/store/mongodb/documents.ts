/** The documents of the directory's collections, but for those of events, links and pulls. */
import type { Directory, ResourceType } from '../../model.js'
import type { Write } from '../contract.js'
import type { DeadLetter, LogEntry, QueuedEvent, StoredEvent } from '../event-contract.js'
import type { Leased } from './leases.js'

export interface DirectoryDocument {
  _id: string
  tenant: string
  product: string
  created: string
  body: Directory
  /** Version of the change that last wrote `body`; absent before the first one. */
  version?: number
}

/** How far a directory's changes have been spread; may lag behind the commits (see commit.ts). */
export interface JournalDocument {
  _id: string
  version: number
  sequence: number
}

/** One change. `_id` is directory and version, so only one change can ever take a version. */
export interface CommitDocument {
  _id: string
  directory: string
  version: number
  /** Sequence of its last event. */
  sequence: number
  /** Absent once the change is spread over the collections. */
  pending?: { id: string; parts: number; body: string; at: number }
  deletedAt?: Date
}

/**
 * `version` is the directory's version that last wrote the document. A deleted document stays for an hour as a
 * tombstone (`_id`, `version`, `deletedAt`), so that a stalled process that repeats an old change cannot bring it
 * back.
 */
interface Versioned {
  _id: string
  version: number
  deletedAt?: Date
}
export interface ResourceDocument extends Versioned {
  directory: string
  type: ResourceType
  tenant: string
  product: string
  created: string
  modified: string
  label: string
  terms: string[]
  /** JSON text: SCIM attribute names contain dots and dollars, which are not safe as document keys. */
  raw: string
}
export interface MembershipDocument extends Versioned {
  group: string
  user: string
  /** As it was sent. */
  display?: string
}
export interface PartDocument {
  _id: string
  commit: string
  body: string
}

/** A removed directory: its contents are being purged, and once more an hour later. */
export interface RemovedDocument {
  _id: string
  /** Null until nothing was left. */
  purgedAt: Date | null
  /** The directory as it was, and the sequence of the event about its removal, until that is delivered. */
  body?: Directory
  firstUndelivered?: number
}

/**
 * A change of the directory itself; a removal keeps the directory until its event, with the sequence `firstUndelivered`, is
 * delivered.
 */
export type DirectoryStep =
  | { kind: 'directory'; directory: Directory }
  | { kind: 'removal'; directory: Directory; firstUndelivered: number | undefined }

/** One item of a change's journal text. */
export type JournalItem = Write | DirectoryStep | JournalEvent
interface JournalEvent {
  kind: 'event'
  event: QueuedEvent
}

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

export const toEvent = ({ event, sequence, created, body }: EventDocument): StoredEvent => ({
  ...{ id: event, sequence, created, body },
})

export const fromDocument = <Item>({ _id: id, directory: directoryId, ...rest }: Stored<Item>): Item =>
  ({ id, directoryId, ...rest }) as Item

export const toDocument = <Item extends { id: string; directoryId: string }>({
  id: _id,
  directoryId: directory,
  ...rest
}: Item): Stored<Item> => ({ _id, directory, ...rest }) as Stored<Item>
