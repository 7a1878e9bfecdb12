import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import Database from 'libsql'
import { atomically, openTables, type Tables } from '../../../storage/sqlite.js'
import type { GroupMember } from '../../model.js'
import type { Head, Store } from '../contract.js'
import { createCheckpoints, otherConnection } from './checkpoints.js'
import { createDirectoryStore, directorySchema } from './directories.js'
import { eventSchema } from './event-tables.js'
import { createEventStore } from './events.js'
import { createGroup, type Disk } from './group-commit.js'
import { createLinkStore, createSetupLinkStore, linkSchema, setupLinkSchema } from './links.js'
import { createPullStore, pullSchema } from './pulls.js'
import {
  applyChange,
  type ResourceRow,
  resourceSchema,
  scanAll,
  scanTerms,
  selectResources,
  toResource,
} from './resources.js'
import { page, type Sql, scoped } from './sql.js'

/** Lower versions are those of builds before the first release. */
const tables: Tables = {
  one: 'resources',
  create: [directorySchema, resourceSchema, eventSchema, pullSchema, linkSchema, setupLinkSchema].join('\n'),
  version: 4,
}

/**
 * The embedded store: one SQLite file. A unary plus in a query keeps the planner from scanning a whole directory where
 * ids or terms name a few resources. A change, its events and the new head are stored together or not at all, so the
 * outbox and the data cannot diverge (group-commit.ts). Confirmed changes survive a power cut: SQLite itself only
 * flushes at its checkpoints (`synchronous=NORMAL`), and we flush each commit, as SQLite would block the whole process
 * meanwhile. The cache is 16 MiB because each new resource is written to many places in the indexes. SQLite's own
 * checkpoint, here at 160 MiB of log, covers what checkpoints.ts could not do.
 */
export function openSqlite(file: string): Store {
  // Created by us first, as SQLite's side files take over the mode of the database file.
  closeSync(openSync(file, 'a', 0o600))
  const db = new Database(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000;')
  db.exec('PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 40000;')
  db.exec('PRAGMA journal_size_limit = 33554432')
  try {
    openTables(db, file, tables)
  } catch (error) {
    db.close()
    throw error
  }

  const statements = new Map<string, Database.Statement<unknown[]>>()
  const prepared = (sql: string): Database.Statement<unknown[]> => {
    const known = statements.get(sql)
    if (known) return known
    const statement = db.prepare<unknown[]>(sql)
    statements.set(sql, statement)
    return statement
  }
  // Parameters are passed as one array: libsql takes a lone null for named parameters.
  const run = (sql: string, ...values: unknown[]): number => {
    const { changes } = prepared(sql).run(values)
    checkpoints.wrote(changes)
    return changes
  }
  const all = <Row>(sql: string, ...values: unknown[]): Row[] => prepared(sql).all(values) as Row[]
  const one = <Row>(sql: string, ...values: unknown[]): Row | undefined =>
    prepared(sql).get(values) as Row | undefined

  const together = <Result>(work: () => Result): Result => atomically(db, work)
  const sql: Sql = { run, all, one, together }

  const log = openSync(`${file}-wal`, 'r+')
  const flushLog = promisify(fdatasync)
  const disk: Disk = { flush: () => flushLog(log), flushNow: () => fdatasyncSync(log) }
  const group = createGroup(text => db.exec(text), disk)
  const beside = otherConnection(file)
  const checkpoints = createCheckpoints({
    elsewhere: beside.pass,
    here: () => group.alone(() => void db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()),
  })
  /** For writes that do not change users or groups: they are on disk when they return. */
  const writing: Sql = {
    ...sql,
    run: (...asked) => group.alone(() => run(...asked)),
    together: work => group.alone(() => together(work)),
  }
  const afterFlush =
    <Values extends unknown[], Result>(ask: (...values: Values) => Result) =>
    (...values: Values): Result => {
      group.flush()
      return ask(...values)
    }
  /** Sees only what is on disk, so that no event is delivered that a crash could still take back. */
  const flushed = { ...writing, all: afterFlush(all), one: afterFlush(one) } as Sql

  return {
    ...createDirectoryStore(writing),
    ...createEventStore(flushed),
    ...createPullStore(writing),
    ...createLinkStore(writing),
    ...createSetupLinkStore(writing),

    head: async id => {
      const row = one<Head>('SELECT version, sequence FROM directories WHERE id = ?', id)
      return row && { version: row.version, sequence: row.sequence }
    },
    async commit(directoryId, head, change) {
      const { result, durable } = group.join(() => applyChange(sql, directoryId, head, change))
      return result ? { durable } : undefined
    },

    async resource(scope, type, id) {
      const { where, values } = scoped(scope)
      const [row] = all<ResourceRow>(
        `${selectResources} WHERE id = ? AND ${where} AND type = ?`,
        id,
        ...values,
        type,
      )
      return row && toResource(row)
    },
    resourcesById: async (directoryId, type, ids) =>
      all<ResourceRow>(
        `${selectResources} WHERE id IN (SELECT value FROM json_each(?)) AND +directory_id = ? AND +type = ?`,
        ...[JSON.stringify(ids), directoryId, type],
      ).map(toResource),
    idsAmong: async (directoryId, type, ids) =>
      new Set(
        all<{ id: string }>(
          `SELECT id FROM resources WHERE id IN (SELECT value FROM json_each(?)) AND +directory_id = ? AND +type = ?`,
          ...[JSON.stringify(ids), directoryId, type],
        ).map(row => row.id),
      ),
    async resources(scope, type, wanted) {
      const { where, values } = scoped(scope)
      const condition = { where: `${where} AND type = ?`, values: [...values, type] }
      return page<ResourceRow>(sql, selectResources, condition, wanted).map(toResource)
    },
    count: async (directoryId, type) =>
      one<{ n: number }>(
        'SELECT n FROM resource_counts WHERE directory_id = ? AND type = ?',
        directoryId,
        type,
      )?.n ?? 0,
    scan: async scan => (scan.terms ? scanTerms(sql, scan, scan.terms) : scanAll(sql, scan)).map(toResource),

    members: async (groupId, { after, offset, limit }) =>
      all<GroupMember>(
        `SELECT user_id AS userId, COALESCE(display, label) AS label FROM memberships JOIN resources ON id = user_id
         WHERE group_id = ? AND user_id > ? ORDER BY user_id LIMIT ? OFFSET ?`,
        ...[groupId, after?.id ?? '', limit, offset],
      ),
    membersAmong: async (groupId, userIds) =>
      new Map(
        all<{ user_id: string; display: string | null }>(
          `SELECT user_id, display FROM memberships
           WHERE group_id = ? AND user_id IN (SELECT value FROM json_each(?))`,
          ...[groupId, JSON.stringify(userIds)],
        ).map(row => [row.user_id, row.display ?? undefined]),
      ),
    groupIdsOf: async userId =>
      all<{ group_id: string }>(
        'SELECT group_id FROM memberships WHERE user_id = ? ORDER BY group_id',
        userId,
      ).map(row => row.group_id),

    async restore() {
      // This fails while there is no room to move the log into the file.
      db.exec('PRAGMA wal_checkpoint(PASSIVE)')
      group.mend(() => {
        const { busy } = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
        if (busy === 1) throw new Error('the log is being read')
      })
      group.alone(() => db.exec(`PRAGMA user_version = ${tables.version}`))
    },
    async close() {
      try {
        group.flush()
      } catch {
        // What is not on disk was not confirmed.
      }
      await Promise.all([group.settled(), checkpoints.settled()])
      beside.close()
      closeSync(log)
      statements.clear()
      try {
        // Merges the side files into the database file; libsql's close alone leaves them behind.
        db.exec('PRAGMA journal_mode = DELETE')
      } catch {
        // Another process has the database open: the side files are its own now.
      }
      db.close()
    },
  }
}
