import type { Head, ResourceChange, Write } from './contract.js'
import { deleteResource, deleteTerms, type Sql } from './sql.js'
import { insertEvents } from './sqlite-events.js'

/** Applies a change, its events and the new head, within a transaction of the caller. False when `head` is stale. */
export function applyChange(
  sql: Sql,
  directoryId: string,
  head: Head,
  { writes, events }: ResourceChange,
): boolean {
  const moved = sql.run(
    'UPDATE directories SET version = version + 1, sequence = ? WHERE id = ? AND version = ?',
    ...[head.sequence + events.length, directoryId, head.version],
  )
  if (moved === 0) return false
  for (const step of writes) write(sql, directoryId, step)
  insertEvents(sql, directoryId, events)
  return true
}

function write(sql: Sql, directoryId: string, step: Write): void {
  const { run, one } = sql
  switch (step.kind) {
    case 'create':
    case 'replace': {
      const { id, type, tenant, product, created, modified, label, raw } = step.resource
      const terms = JSON.stringify(step.terms)
      const before = one<{ terms: string }>('SELECT terms FROM resources WHERE id = ?', id)?.terms
      if (before !== undefined && before !== terms) deleteTerms(sql, id)
      run(
        `INSERT INTO resources (id, directory_id, type, tenant, product, created, modified, label, raw, terms)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET
           modified = excluded.modified, label = excluded.label, raw = excluded.raw, terms = excluded.terms`,
        ...[id, directoryId, type, tenant, product, created, modified, label, JSON.stringify(raw), terms],
      )
      if (before === terms) return
      run(
        `INSERT INTO terms SELECT r.directory_id, r.type, value, r.number
         FROM resources AS r, json_each(r.terms) WHERE r.id = ?`,
        id,
      )
      return
    }
    case 'delete':
      deleteResource(sql, step.id)
      return
    case 'join':
      for (const userId of step.userIds) {
        const display = step.displays?.[userId] ?? null
        run(
          'INSERT INTO memberships (group_id, user_id, display) VALUES (?, ?, ?)',
          ...[step.groupId, userId, display],
        )
      }
      return
    case 'display':
      for (const [userId, display] of Object.entries(step.displays)) {
        run(
          'UPDATE memberships SET display = ? WHERE group_id = ? AND user_id = ?',
          ...[display, step.groupId, userId],
        )
      }
      return
    case 'leave':
      for (const userId of step.userIds) {
        run('DELETE FROM memberships WHERE group_id = ? AND user_id = ?', step.groupId, userId)
      }
  }
}
