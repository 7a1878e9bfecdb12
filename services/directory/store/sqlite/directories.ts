import { queueRange } from '../../events/queue.js'
import type { Directory } from '../../model.js'
import { type Announcement, type DirectoryStore, purgeBatch } from '../contract.js'
import { createDeletedStore, firstUndelivered, keepUntilDelivered } from './deleted.js'
import { insertEvents, purgeEvents } from './event-tables.js'
import { deleteResource, type Sql } from './sql.js'

interface Row {
  body: string
}

/** Directories in the embedded database. */
export function createDirectoryStore(sql: Sql): DirectoryStore {
  const { run, all, one, together } = sql
  const read = (row: Row | undefined): Directory | undefined => row && (JSON.parse(row.body) as Directory)

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
    const first = firstUndelivered(sql, id)
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
        ...[id, tenant, product, created, JSON.stringify(directory)],
      )
    },
    directory: async id => read(one('SELECT body FROM directories WHERE id = ?', id)),
    async directories({ tenant, product }, { after, offset, limit }) {
      const where = tenant === undefined ? 'product = ?' : 'tenant = ? AND product = ?'
      return all<Row>(
        `SELECT body FROM directories WHERE ${where} ${after ? 'AND (created, id) > (?, ?)' : ''}
         ORDER BY created, id LIMIT ? OFFSET ?`,
        ...(tenant === undefined ? [product] : [tenant, product]),
        ...(after ? [after.created, after.id] : []),
        ...[limit, offset],
      ).map(row => JSON.parse(row.body) as Directory)
    },
    everyDirectory: async ({ after, limit }) =>
      all<Row>(
        `SELECT body FROM directories ${after ? 'WHERE (created, id) > (?, ?)' : ''} ORDER BY created, id LIMIT ?`,
        ...(after ? [after.created, after.id] : []),
        limit,
      ).map(row => JSON.parse(row.body) as Directory),
    oldestDirectory: async () => read(one('SELECT body FROM directories ORDER BY created, id LIMIT 1')),
    newestDirectory: async () =>
      read(one('SELECT body FROM directories ORDER BY created DESC, id DESC LIMIT 1')),
    // A directory is always written as the text of the object it was read as, so equal text means an unchanged
    // directory.
    replaceDirectory: async (before, after, announcement) =>
      together(() => {
        const { id } = before
        const row = one<Row>('SELECT body FROM directories WHERE id = ?', id)
        if (row?.body !== JSON.stringify(before) || (announcement && !announce(id, announcement)))
          return false
        run('UPDATE directories SET body = ? WHERE id = ?', JSON.stringify(after), id)
        return true
      }),
    removeDirectory: async (id, announcement) =>
      together(() => {
        const row = one<Row>('SELECT body FROM directories WHERE id = ?', id)
        if (!row || (announcement && !announce(id, announcement))) return false
        const queued = announcement?.events.find(event => event.to.length > 0)
        if (queued) keepUntilDelivered(sql, id, row.body, queued.sequence)
        run('DELETE FROM directories WHERE id = ?', id)
        run('INSERT INTO removed_directories VALUES (?)', id)
        return true
      }),
    ...createDeletedStore(sql),
    purgeSome: async () =>
      together(() => {
        const removed = one<{ id: string }>('SELECT id FROM removed_directories LIMIT 1')
        if (!removed) return false
        if (!purge(removed.id)) run('DELETE FROM removed_directories WHERE id = ?', removed.id)
        return true
      }),
  }
}
