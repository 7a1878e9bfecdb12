/** What the SQLite files of both services have in common: transactions, the version of their tables, their faults. */
import type { StoreFault } from './health.js'

/**
 * Runs the work as one transaction that takes the write lock at once, so that two processes cannot block each other
 * halfway. Rethrows the original error: after a full disk SQLite has already rolled back, and the error of a second
 * rollback would hide it.
 */
export function atomically<Result>(db: { exec(sql: string): unknown }, work: () => Result): Result {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    try {
      db.exec('ROLLBACK')
    } catch {
      // No transaction is left to roll back.
    }
    throw error
  }
}

interface Database {
  exec(sql: string): unknown
  prepare(sql: string): { get(): unknown }
}

export interface Tables {
  /** Name of one of the tables; a file that lacks it is new. */
  readonly one: string
  /** Statements that create them. */
  readonly create: string
  /** Their version, `user_version` of the file. */
  readonly version: number
}

/**
 * Creates the tables of a new file, completely or not at all. Throws an Error with a sentence for a file whose tables
 * have another version, which stays unchanged.
 */
export function openTables(db: Database, file: string, { one, create, version }: Tables): void {
  const isNew = (): boolean =>
    db.prepare(`SELECT 1 FROM sqlite_master WHERE name = '${one}'`).get() === undefined
  if (isNew()) {
    atomically(db, () => {
      // Another process may have been faster.
      if (isNew()) db.exec(`${create}; PRAGMA user_version = ${version}`)
    })
  }
  const { user_version: found } = db.prepare('PRAGMA user_version').get() as { user_version: number }
  if (found === version) return
  throw new Error(
    found > version
      ? `${file} was made by a newer release (its tables have version ${found}, this release knows ${version}). Start that release, or put back a copy from before it.`
      : `${file} was made by another version of this service (its tables have version ${found}, not ${version}). Move it away to start afresh.`,
  )
}

/** By the beginning of SQLite's own error name (https://sqlite.org/rescode.html), or of the system's. */
const faults: readonly (readonly [string, StoreFault])[] = [
  ['SQLITE_FULL', 'full'],
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['SQLITE_IOERR', 'failing'],
  ['SQLITE_CANTOPEN', 'failing'],
  ['EIO', 'failing'],
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_READONLY', 'locked'],
  ['EROFS', 'locked'],
]

/** The fault of the disk or the file that an error of SQLite or of its file system reports, if any. */
export function sqliteFault(error: unknown): StoreFault | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  if (typeof code !== 'string') return undefined
  return faults.find(([name]) => code.startsWith(name))?.[1]
}
