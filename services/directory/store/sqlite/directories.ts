import { queueRange } from '../../events/queue.js'
import type { Directory } from '../../model.js'
import { type Announcement, type DirectoryStore, purgeBatch } from '../contract.js'
import { insertEvents, purgeEvents } from './event-tables.js'
import { deleteResource } from './resources.js'
import { page, type Sql, scoped } from './sql.js'

/**
 * `removed_directories` lists those that still have to be purged. `deleted_directories` are those whose removal has yet
 * to be delivered: as they were, with the sequence of the first event to deliver.
 */
export const directorySchema = `
CREATE TABLE directories (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, product TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 0, sequence INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX directories_scope ON directories (tenant, product, created, id);
CREATE INDEX directories_product ON directories (product, created, id);
CREATE INDEX directories_age ON directories (created, id);
CREATE TABLE removed_directories (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE deleted_directories (
  id TEXT PRIMARY KEY, body TEXT NOT NULL, sequence INTEGER NOT NULL
) WITHOUT ROWID;
`

interface Row {
  body: string
}
interface DeletedRow extends Row {
  id: string
  sequence: number
}

const read = (row: Row): Directory => JSON.parse(row.body) as Directory
/**
 * A directory is always written as the text of the object it was read as, so equal text means an unchanged directory.
 */
const textOf = (directory: Directory): string => JSON.stringify(directory)

/** Directories in the embedded database. */
export function createDirectoryStore(sql: Sql): DirectoryStore {
  const { run, all, one, together } = sql

  const found = (query: string, ...values: unknown[]): Directory | undefined => {
    const row = one<Row>(query, ...values)
    return row && read(row)
  }

  /** True if the directory still held something. */
  const purge = (id: string): boolean => {
    const resources = all<{ id: string }>(
      'SELECT id FROM resources WHERE directory_id = ? LIMIT ?',
      ...[id, purgeBatch],
    )
    for (const resource of resources) deleteResource(sql, resource.id)
    run('DELETE FROM pulls WHERE directory_id = ?', id)
    run('DELETE FROM consent_links WHERE directory_id = ?', id)
    run('DELETE FROM setup_links WHERE directory_id = ?', id)
    const first = one<DeletedRow>('SELECT * FROM deleted_directories WHERE id = ?', id)?.sequence
    const last = first === undefined ? Number.MAX_SAFE_INTEGER : first - 1
    if (resources.length + purgeEvents(sql, id, last) > 0) return true
    if (first === undefined) {
      run('DELETE FROM deliveries WHERE directory_id >= ? AND directory_id < ?', ...queueRange(id))
    }
    return false
  }

  /** False when the head is stale. */
  const announce = (id: string, { head, events }: Announcement): boolean => {
    const moved = run(
      'UPDATE directories SET version = version + 1, sequence = ? WHERE id = ? AND version = ?',
      ...[head.sequence + events.length, id, head.version],
    )
    if (moved === 1) insertEvents(sql, id, events)
    return moved === 1
  }

  return {
    async createDirectory(directory) {
      const { id, tenant, product, created } = directory
      run(
        'INSERT INTO directories (id, tenant, product, created, body) VALUES (?, ?, ?, ?, ?)',
        ...[id, tenant, product, created, textOf(directory)],
      )
    },
    directory: async id => found('SELECT body FROM directories WHERE id = ?', id),
    directories: async (scope, wanted) =>
      page<Row>(sql, 'SELECT body FROM directories', scoped(scope), wanted).map(read),
    newestDirectory: async () => found('SELECT body FROM directories ORDER BY created DESC, id DESC LIMIT 1'),
    replaceDirectory: async (before, after, announcement) =>
      together(() => {
        const { id } = before
        const row = one<Row>('SELECT body FROM directories WHERE id = ?', id)
        if (row?.body !== textOf(before) || (announcement && !announce(id, announcement))) return false
        run('UPDATE directories SET body = ? WHERE id = ?', textOf(after), id)
        return true
      }),
    removeDirectory: async (id, announcement) =>
      together(() => {
        const row = one<Row>('SELECT body FROM directories WHERE id = ?', id)
        if (!row || (announcement && !announce(id, announcement))) return false
        const queued = announcement?.events.find(event => event.to.length > 0)
        if (queued) {
          run('INSERT INTO deleted_directories VALUES (?, ?, ?)', id, row.body, queued.sequence)
          // So that the last event has all of its attempts.
          run(
            'UPDATE deliveries SET attempts = 0, due = 0 WHERE directory_id >= ? AND directory_id < ?',
            ...queueRange(id),
          )
        }
        run('DELETE FROM directories WHERE id = ?', id)
        run('INSERT INTO removed_directories VALUES (?)', id)
        return true
      }),
    purgeSome: async () =>
      together(() => {
        const removed = one<{ id: string }>('SELECT id FROM removed_directories LIMIT 1')
        if (!removed) return false
        if (!purge(removed.id)) run('DELETE FROM removed_directories WHERE id = ?', removed.id)
        return true
      }),
    deletedDirectory: async id => found('SELECT body FROM deleted_directories WHERE id = ?', id),
    deletedDirectories: async () => all<Row>('SELECT body FROM deleted_directories').map(read),
    replaceDeletedDirectory: async (before, after) =>
      run(
        'UPDATE deleted_directories SET body = ? WHERE id = ? AND body = ?',
        ...[textOf(after), before.id, textOf(before)],
      ) === 1,
  }
}

/** Passes removed directories with no events left to deliver on to the purge. Runs in a transaction. */
export function purgeDelivered({ all, one, run }: Sql): void {
  for (const { id } of all<DeletedRow>('SELECT * FROM deleted_directories')) {
    const owed =
      one(
        'SELECT 1 FROM event_queue WHERE directory_id >= ? AND directory_id < ? LIMIT 1',
        ...queueRange(id),
      ) ?? one('SELECT 1 FROM dead_letters WHERE directory_id = ? LIMIT 1', id)
    if (owed) continue
    run('DELETE FROM deleted_directories WHERE id = ?', id)
    run('INSERT OR IGNORE INTO removed_directories VALUES (?)', id)
  }
}
