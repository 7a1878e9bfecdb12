import type { Resource } from '../../model.js'
import type { Head, ResourceChange, Scan, Write } from '../contract.js'
import { insertEvents } from './event-tables.js'
import { page, type Sql } from './sql.js'

/**
 * Tables of users, groups and memberships. Every query uses one of the keys or indexes here. A create costs the
 * pages that it touches, so a resource lists its terms itself (JSON) instead of through a second index.
 */
export const resourceSchema = `
CREATE TABLE resources (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, directory_id TEXT NOT NULL, type TEXT NOT NULL,
  tenant TEXT NOT NULL, product TEXT NOT NULL, created TEXT NOT NULL, modified TEXT NOT NULL, label TEXT NOT NULL,
  raw TEXT NOT NULL, terms TEXT NOT NULL
);
CREATE INDEX resources_directory ON resources (directory_id, type, created, id);
CREATE INDEX resources_scope ON resources (tenant, product, type, created, id);

CREATE TABLE resource_counts (
  directory_id TEXT NOT NULL, type TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (directory_id, type)
) WITHOUT ROWID;
CREATE TRIGGER resources_added AFTER INSERT ON resources BEGIN
  INSERT INTO resource_counts VALUES (new.directory_id, new.type, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER resources_gone AFTER DELETE ON resources BEGIN
  UPDATE resource_counts SET n = n - 1 WHERE directory_id = old.directory_id AND type = old.type;
END;

CREATE TABLE terms (
  directory_id TEXT NOT NULL, type TEXT NOT NULL, term TEXT NOT NULL, resource INTEGER NOT NULL,
  PRIMARY KEY (directory_id, type, term, resource)
) WITHOUT ROWID;

CREATE TABLE memberships (
  group_id TEXT NOT NULL, user_id TEXT NOT NULL, display TEXT, PRIMARY KEY (group_id, user_id)
) WITHOUT ROWID;
CREATE INDEX memberships_user ON memberships (user_id, group_id);
`

export type ResourceRow = Omit<Resource, 'raw'> & { readonly raw: string }
const columns = 'id, directory_id AS directoryId, type, tenant, product, created, modified, label, raw'
export const selectResources = `SELECT ${columns} FROM resources`
export const toResource = (row: ResourceRow): Resource => ({ ...row, raw: JSON.parse(row.raw) })

/** A page of all resources of a type in a directory. */
export const scanAll = (sql: Sql, { directoryId, type, after, limit }: Scan): ResourceRow[] =>
  page(
    sql,
    selectResources,
    { where: 'directory_id = ? AND type = ?', values: [directoryId, type] },
    { after, offset: 0, limit },
  )

/**
 * A page of the resources with any of the terms. Each term is queried separately, in the order of its index, which is
 * that of row numbers and so of creation: a page costs the same however many resources have a term.
 */
export function scanTerms(
  { all }: Sql,
  { directoryId, type, after, limit }: Scan,
  terms: readonly string[],
): ResourceRow[] {
  const beyond = after ? numberAfter() : 0
  const numbers = new Set<number>()
  for (const term of new Set(terms)) {
    const found = all<{ resource: number }>(
      `SELECT resource FROM terms WHERE directory_id = ? AND type = ? AND term = ? AND resource >= ?
       ORDER BY resource LIMIT ?`,
      ...[directoryId, type, term, beyond, limit],
    )
    for (const { resource } of found) numbers.add(resource)
  }
  const first = [...numbers].sort((a, b) => a - b).slice(0, limit)
  return all<ResourceRow>(
    `${selectResources} WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number`,
    JSON.stringify(first),
  )

  /** The lowest number that may come next; the resource that `after` names may have been deleted. */
  function numberAfter(): number {
    const own = all<{ number: number }>('SELECT number FROM resources WHERE id = ?', after?.id)[0]
    if (own) return own.number + 1
    const next = all<{ number: number }>(
      `SELECT number FROM resources WHERE directory_id = ? AND type = ? AND (created, id) > (?, ?)
       ORDER BY created, id LIMIT 1`,
      ...[directoryId, type, after?.created, after?.id],
    )[0]
    return next?.number ?? Number.MAX_SAFE_INTEGER
  }
}

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

/** Deletes a user or group with its lookup terms and memberships. */
export function deleteResource(sql: Sql, id: string): void {
  const { run } = sql
  deleteTerms(sql, id)
  run('DELETE FROM resources WHERE id = ?', id)
  run('DELETE FROM memberships WHERE group_id = ?', id)
  run('DELETE FROM memberships WHERE user_id = ?', id)
}

/** Deletes the lookup terms of a user or group. */
function deleteTerms({ run }: Sql, id: string): void {
  run(
    `DELETE FROM terms WHERE (directory_id, type, term, resource) IN (
       SELECT r.directory_id, r.type, value, r.number FROM resources AS r, json_each(r.terms) WHERE r.id = ?)`,
    id,
  )
}
