import type { DeadLetter, LogEntry, StoredEvent } from './event-contract.js'
import type { Leased } from './mongodb-leases.js'

/** An event, in the feed and, until it is delivered, in the outbox. `_id` is directory and sequence. */
export interface EventDocument {
  _id: string
  directory: string
  sequence: number
  event: string
  created: string
  body: string
}

/** One lease of a directory's deliveries. */
export interface LeaseDocument extends Leased {
  /** Sequence up to which events are delivered or dead. */
  delivered: number
  attempts: number
  due: number
}

/** `_id` is the event's id. */
export interface DeadDocument extends Omit<DeadLetter, 'id' | 'directoryId'> {
  _id: string
  directory: string
}

/** `_id` is the message's id. */
export interface LogDocument extends Omit<LogEntry, 'id' | 'directoryId'> {
  _id: string
  directory: string
}

/** The event of a document. */
export const toEvent = ({ event, sequence, created, body }: EventDocument): StoredEvent => ({
  ...{ id: event, sequence, created, body },
})

/** The dead letter of a document. */
export const toDeadLetter = ({ _id: id, directory: directoryId, ...rest }: DeadDocument): DeadLetter => ({
  ...{ id, directoryId, ...rest },
})

/** The document of a dead letter; a replay that was wished for has had its attempt. */
export const toDeadDocument = ({ id, directoryId: directory, ...rest }: DeadLetter): DeadDocument => ({
  ...{ _id: id, directory, ...rest, replay: false },
})

/** The log entry of a document. */
export const toLogEntry = ({ _id: id, directory: directoryId, ...rest }: LogDocument): LogEntry => ({
  ...{ id, directoryId, ...rest },
})

/** The document of a log entry. */
export const toLogDocument = ({ id, directoryId: directory, ...rest }: LogEntry): LogDocument => ({
  ...{ _id: id, directory, ...rest },
})
