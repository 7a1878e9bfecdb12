import { queueOf, queueRange } from '../../events/queue.js'
import { type DeadLetter, type LogEntry, pruneBatch, type QueuedEvent } from '../event-contract.js'
import type { Sql } from './sql.js'

/**
 * Tables of events. `event_queue` lists the events that are neither delivered nor dead; its `directory_id`, like that
 * of `deliveries`, is a queue of one webhook (events/queue.ts).
 */
export const eventSchema = `
CREATE TABLE events (
  directory_id TEXT NOT NULL, sequence INTEGER NOT NULL, id TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (directory_id, sequence)
);
CREATE INDEX events_age ON events (created);

CREATE TABLE event_queue (
  directory_id TEXT NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (directory_id, sequence)
) WITHOUT ROWID;

CREATE TABLE deliveries (
  directory_id TEXT PRIMARY KEY, fence INTEGER NOT NULL, until INTEGER NOT NULL,
  attempts INTEGER NOT NULL, due INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE dead_letters (
  id TEXT PRIMARY KEY, directory_id TEXT NOT NULL, webhook_id TEXT NOT NULL, tenant TEXT NOT NULL, product TEXT NOT NULL,
  sequence INTEGER NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL, problem TEXT NOT NULL, failed TEXT NOT NULL,
  replay INTEGER NOT NULL
);
CREATE INDEX dead_letters_directory ON dead_letters (directory_id, failed, id);
CREATE INDEX dead_letters_scope ON dead_letters (tenant, product, failed, id);
CREATE INDEX dead_letters_age ON dead_letters (failed);
CREATE INDEX dead_letters_replay ON dead_letters (directory_id, sequence) WHERE replay = 1;

CREATE TABLE webhook_log (
  id TEXT PRIMARY KEY, directory_id TEXT NOT NULL, webhook_id TEXT NOT NULL, tenant TEXT NOT NULL, product TEXT NOT NULL,
  created TEXT NOT NULL, endpoint TEXT NOT NULL, status INTEGER, delivered INTEGER NOT NULL, attempts INTEGER NOT NULL, problem TEXT,
  payload TEXT NOT NULL
);
CREATE INDEX webhook_log_directory ON webhook_log (directory_id, created, id);
CREATE INDEX webhook_log_scope ON webhook_log (tenant, product, created, id);
CREATE INDEX webhook_log_age ON webhook_log (created);
`

/** The columns of a StoredEvent, a DeadLetter and a LogEntry, under their names there. */
export const eventColumns = 'id, sequence, created, body'
const owner = 'directory_id AS directoryId, webhook_id AS webhookId, tenant, product'
export const deadColumns = `${eventColumns}, ${owner}, attempts, problem, failed, replay`
export const logColumns = `id, created, ${owner}, endpoint, status, delivered, attempts, problem, payload`

/** SQLite has no booleans. */
export type DeadRow = Omit<DeadLetter, 'replay'> & { readonly replay: number }
export type LogRow = Omit<LogEntry, 'delivered'> & { readonly delivered: number }
export const toDeadLetter = (row: DeadRow): DeadLetter => ({ ...row, replay: row.replay === 1 })
export const toLogEntry = (row: LogRow): LogEntry => ({ ...row, delivered: row.delivered === 1 })

/** Stores the events of a change, and queues them for their webhooks. Runs in the change's transaction. */
export function insertEvents({ run }: Sql, directoryId: string, events: readonly QueuedEvent[]): void {
  for (const { sequence, id, created, body, to } of events) {
    run('INSERT INTO events VALUES (?, ?, ?, ?, ?)', directoryId, sequence, id, created, body)
    for (const webhook of to) {
      run('INSERT INTO event_queue VALUES (?, ?)', queueOf(directoryId, webhook), sequence)
    }
  }
}

/** Deletes some of what is left of a removed directory's events up to a sequence, and returns how many rows. */
export function purgeEvents({ run }: Sql, directoryId: string, last: number): number {
  const queues = queueRange(directoryId)
  const some = (table: string, where: string, ...values: unknown[]): number =>
    run(
      `DELETE FROM ${table} WHERE (directory_id, sequence) IN (
         SELECT directory_id, sequence FROM ${table} WHERE ${where} AND sequence <= ? LIMIT ?)`,
      ...[...values, last, pruneBatch],
    )
  const dead = 'SELECT id FROM dead_letters WHERE directory_id = ? AND sequence <= ? LIMIT ?'
  const log = 'SELECT id FROM webhook_log WHERE directory_id = ? LIMIT ?'
  return [
    some('events', 'directory_id = ?', directoryId),
    some('event_queue', 'directory_id >= ? AND directory_id < ?', ...queues),
    run(`DELETE FROM dead_letters WHERE id IN (${dead})`, directoryId, last, pruneBatch),
    run(`DELETE FROM webhook_log WHERE id IN (${log})`, directoryId, pruneBatch),
  ].reduce((sum, count) => sum + count, 0)
}
