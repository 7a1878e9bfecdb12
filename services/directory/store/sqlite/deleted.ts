import { queueRange } from '../../events/queue.js'
import type { Directory } from '../../model.js'
import type { DirectoryStore } from '../contract.js'
import type { Sql } from './sql.js'

/**
 * Removed directories whose removal has yet to be delivered: as they were, with the sequence of the first event to
 * deliver.
 */
export const deletedSchema = `
CREATE TABLE deleted_directories (
  id TEXT PRIMARY KEY, body TEXT NOT NULL, sequence INTEGER NOT NULL
) WITHOUT ROWID;
`

interface Row {
  id: string
  body: string
  sequence: number
}

const read = (row: Row): Directory => JSON.parse(row.body) as Directory

/** The sequence from which on a removed directory's events are still delivered; undefined when there are none. */
export const firstUndelivered = ({ one }: Sql, id: string): number | undefined =>
  one<Row>('SELECT * FROM deleted_directories WHERE id = ?', id)?.sequence

/** Keeps a directory that is being removed. Runs in the removal's transaction. */
export function keepUntilDelivered({ run }: Sql, id: string, body: string, sequence: number): void {
  const [from, before] = queueRange(id)
  run('INSERT INTO deleted_directories VALUES (?, ?, ?)', id, body, sequence)
  // Resets the attempts, so that the last event has all of its own.
  run(
    'UPDATE deliveries SET attempts = 0, due = 0 WHERE directory_id >= ? AND directory_id < ?',
    from,
    before,
  )
}

/** Passes removed directories with no events left to deliver on to the purge. Runs in a transaction. */
export function purgeDelivered({ all, one, run }: Sql): void {
  for (const { id } of all<Row>('SELECT * FROM deleted_directories')) {
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

/** Deleted directories whose removal is not delivered, in the embedded database. */
export function createDeletedStore({
  run,
  all,
  one,
}: Sql): Pick<DirectoryStore, 'deletedDirectory' | 'deletedDirectories' | 'replaceDeletedDirectory'> {
  return {
    async deletedDirectory(id) {
      const row = one<Row>('SELECT * FROM deleted_directories WHERE id = ?', id)
      return row && read(row)
    },
    deletedDirectories: async () => all<Row>('SELECT * FROM deleted_directories').map(read),
    replaceDeletedDirectory: async (before, after) =>
      run(
        'UPDATE deleted_directories SET body = ? WHERE id = ? AND body = ?',
        ...[JSON.stringify(after), before.id, JSON.stringify(before)],
      ) === 1,
  }
}
