import { closeSync, openSync } from 'node:fs'
import Database from 'libsql'
import type { Directory, Member, Scope } from '../model.js'
import {
  type Change,
  deliveryBatch,
  type Head,
  type QueuedEvent,
  type Store,
  type Write,
} from './contract.js'
import { type ResourceRow, sqliteSchema, toResource } from './sqlite-schema.js'

interface DeliveryRow {
  attempts: number
  due: number
}

/**
 * The embedded store: one SQLite file. A unary plus in a query keeps the planner from walking a whole directory where ids or
 * terms name a few resources. A change, its events and the new head are one transaction, so the outbox and the
 * data cannot part. `synchronous=FULL`: what was answered survives a power cut.
 */
export function openSqlite(file: string): Store {
  // Made by us first, as SQLite's side files take over the mode of the database file.
  closeSync(openSync(file, 'a', 0o600))
  const db = new Database(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;')
  db.exec(sqliteSchema)

  const statements = new Map<string, Database.Statement<unknown[]>>()
  const prepared = (sql: string): Database.Statement<unknown[]> => {
    const known = statements.get(sql)
    if (known) return known
    const statement = db.prepare<unknown[]>(sql)
    statements.set(sql, statement)
    return statement
  }
  // Parameters go in as one array: libsql takes a lone null for named parameters.
  const run = (sql: string, ...values: unknown[]): number => prepared(sql).run(values).changes
  const all = <Row>(sql: string, ...values: unknown[]): Row[] => prepared(sql).all(values) as Row[]
  const one = <Row>(sql: string, ...values: unknown[]): Row | undefined =>
    prepared(sql).get(values) as Row | undefined

  const readDirectory = (row: { body: string } | undefined): Directory | undefined =>
    row && (JSON.parse(row.body) as Directory)

  const write = (directoryId: string, step: Write): void => {
    switch (step.kind) {
      case 'create':
      case 'replace': {
        const { id, type, tenant, product, created, modified, label, raw } = step.resource
        run(
          `INSERT INTO resources (id, directory_id, type, tenant, product, created, modified, label, raw)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (id) DO UPDATE SET modified = excluded.modified, label = excluded.label, raw = excluded.raw`,
          ...[id, directoryId, type, tenant, product, created, modified, label, JSON.stringify(raw)],
        )
        run('DELETE FROM terms WHERE resource_id = ?', id)
        for (const term of step.terms)
          run('INSERT INTO terms VALUES (?, ?, ?, ?)', directoryId, type, term, id)
        return
      }
      case 'delete':
        run('DELETE FROM resources WHERE id = ?', step.id)
        run('DELETE FROM terms WHERE resource_id = ?', step.id)
        run('DELETE FROM memberships WHERE group_id = ?', step.id)
        run('DELETE FROM memberships WHERE user_id = ?', step.id)
        return
      case 'join':
        for (const userId of step.userIds) run('INSERT INTO memberships VALUES (?, ?)', step.groupId, userId)
        return
      case 'leave':
        for (const userId of step.userIds) {
          run('DELETE FROM memberships WHERE group_id = ? AND user_id = ?', step.groupId, userId)
        }
    }
  }

  const commit = db.transaction((directoryId: string, head: Head, { writes, events }: Change): boolean => {
    const moved = run(
      'UPDATE directories SET version = version + 1, sequence = ? WHERE id = ? AND version = ?',
      ...[head.sequence + events.length, directoryId, head.version],
    )
    if (moved === 0) return false
    for (const step of writes) write(directoryId, step)
    for (const { sequence, id, body } of events) {
      run('INSERT INTO outbox VALUES (?, ?, ?, ?)', directoryId, sequence, id, body)
    }
    return true
  })

  const report: Store['reportDelivery'] = async (directoryId, owner, { delivered, attempts, due, until }) =>
    db
      .transaction(() => {
        const held = run(
          'UPDATE directories SET attempts = ?, due = ?, lease_until = ? WHERE id = ? AND lease_owner = ?',
          ...[attempts, due, until, directoryId, owner],
        )
        if (held === 0) return false
        run('DELETE FROM outbox WHERE directory_id = ? AND sequence <= ?', directoryId, delivered ?? 0)
        return true
      })
      .immediate()

  return {
    async createDirectory(directory) {
      const { id, tenant, product, created } = directory
      run(
        'INSERT INTO directories (id, tenant, product, created, body) VALUES (?, ?, ?, ?, ?)',
        ...[id, tenant, product, created, JSON.stringify(directory)],
      )
    },
    directory: async id => readDirectory(one('SELECT body FROM directories WHERE id = ?', id)),
    directories: async ({ tenant, product }, { offset, limit }) =>
      all<{ body: string }>(
        'SELECT body FROM directories WHERE tenant = ? AND product = ? ORDER BY created, id LIMIT ? OFFSET ?',
        ...[tenant, product, limit, offset],
      ).map(row => JSON.parse(row.body) as Directory),
    oldestDirectory: async () =>
      readDirectory(one('SELECT body FROM directories ORDER BY created, id LIMIT 1')),

    head: async id => {
      const row = one<Head>('SELECT version, sequence FROM directories WHERE id = ?', id)
      return row && { version: row.version, sequence: row.sequence }
    },
    commit: async (directoryId, head, change) => commit.immediate(directoryId, head, change),

    async resource(scope, type, id) {
      const { where, values } = scoped(scope)
      const row = one<ResourceRow>(
        `SELECT * FROM resources WHERE id = ? AND ${where} AND type = ?`,
        id,
        ...values,
        type,
      )
      return row && toResource(row)
    },
    resourcesById: async (directoryId, type, ids) =>
      all<ResourceRow>(
        `SELECT * FROM resources WHERE id IN (SELECT value FROM json_each(?)) AND +directory_id = ? AND +type = ?`,
        ...[JSON.stringify(ids), directoryId, type],
      ).map(toResource),
    idsAmong: async (directoryId, type, ids) =>
      new Set(
        all<{ id: string }>(
          `SELECT id FROM resources WHERE id IN (SELECT value FROM json_each(?)) AND +directory_id = ? AND +type = ?`,
          ...[JSON.stringify(ids), directoryId, type],
        ).map(row => row.id),
      ),
    async resources(scope, type, { offset, limit }) {
      const { where, values } = scoped(scope)
      const sql = `SELECT * FROM resources WHERE ${where} AND type = ? ORDER BY created, id LIMIT ? OFFSET ?`
      return all<ResourceRow>(sql, ...values, type, limit, offset).map(toResource)
    },
    count: async (directoryId, type) =>
      one<{ n: number }>(
        'SELECT count(*) AS n FROM resources WHERE directory_id = ? AND type = ?',
        directoryId,
        type,
      )?.n ?? 0,
    async scan({ directoryId, type, terms, after, limit }) {
      const where = terms
        ? `+directory_id = ? AND +type = ? AND id IN (
             SELECT resource_id FROM terms
             WHERE directory_id = ? AND type = ? AND term IN (SELECT value FROM json_each(?)))`
        : 'directory_id = ? AND type = ?'
      const place = after ? 'AND (created, id) > (?, ?)' : ''
      return all<ResourceRow>(
        `SELECT * FROM resources WHERE ${where} ${place}
         ORDER BY created, id LIMIT ?`,
        ...[directoryId, type],
        ...(terms ? [directoryId, type, JSON.stringify(terms)] : []),
        ...(after ? [after.created, after.id] : []),
        limit,
      ).map(toResource)
    },

    members: async (groupId, { offset, limit }) =>
      all<Member>(
        `SELECT user_id AS userId, label FROM memberships JOIN resources ON id = user_id
         WHERE group_id = ? ORDER BY user_id LIMIT ? OFFSET ?`,
        ...[groupId, limit, offset],
      ).map(({ userId, label }) => ({ userId, label })),
    membersAmong: async (groupId, userIds) =>
      new Set(
        all<{ user_id: string }>(
          'SELECT user_id FROM memberships WHERE group_id = ? AND user_id IN (SELECT value FROM json_each(?))',
          ...[groupId, JSON.stringify(userIds)],
        ).map(row => row.user_id),
      ),
    groupIdsOf: async userId =>
      all<{ group_id: string }>(
        'SELECT group_id FROM memberships WHERE user_id = ? ORDER BY group_id',
        userId,
      ).map(row => row.group_id),

    directoriesWithEvents: async () =>
      all<{ id: string }>(
        // Steps from directory to directory along the key, past however many events each one has.
        `WITH RECURSIVE step (id) AS (
           SELECT min(directory_id) FROM outbox UNION ALL
           SELECT (SELECT min(directory_id) FROM outbox WHERE directory_id > step.id) FROM step WHERE id IS NOT NULL
         ) SELECT id FROM step WHERE id IS NOT NULL`,
      ).map(row => row.id),
    async claimDelivery(directoryId, owner, now, until) {
      const claimed = run(
        'UPDATE directories SET lease_owner = ?, lease_until = ? WHERE id = ? AND (lease_owner = ? OR lease_until <= ?)',
        ...[owner, until, directoryId, owner, now],
      )
      if (claimed === 0) return undefined
      const { attempts, due } = one<DeliveryRow>(
        'SELECT attempts, due FROM directories WHERE id = ?',
        directoryId,
      ) ?? { attempts: 0, due: 0 }
      const events = all<QueuedEvent>(
        'SELECT id, sequence, body FROM outbox WHERE directory_id = ? ORDER BY sequence LIMIT ?',
        ...[directoryId, deliveryBatch],
      ).map(({ id, sequence, body }) => ({ id, sequence, body }))
      return { attempts, due, events }
    },
    reportDelivery: report,

    async close() {
      statements.clear()
      try {
        // Takes the side files into the database file; libsql's close alone leaves them behind.
        db.exec('PRAGMA journal_mode = DELETE')
      } catch {
        // Another process has the database open: the side files are its own now.
      }
      db.close()
    },
  }
}

function scoped(scope: Scope): { where: string; values: string[] } {
  return 'directoryId' in scope
    ? { where: 'directory_id = ?', values: [scope.directoryId] }
    : { where: 'tenant = ? AND product = ?', values: [scope.tenant, scope.product] }
}
