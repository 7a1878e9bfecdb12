/** Migrates a SQLite file of an older release, and keeps a copy of it. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { atomically } from './sqlite-transaction.js'

interface Database {
  exec(sql: string): unknown
  prepare(sql: string): { get(): unknown }
}

export interface Versions {
  readonly db: Database
  readonly file: string
  /** Version of this release's tables; `user_version` of the file. */
  readonly version: number
  /** The oldest version that can be migrated. */
  readonly oldest: number
  /** True for a file without tables. */
  readonly isNew: boolean
  /**
   * Creates what this release's tables have and the file lacks. Runs in one transaction with the change of the
   * version.
   */
  readonly migrate: () => void
  /** Called with a sentence after an older file was migrated. */
  readonly say: (fields: object, message: string) => void
}

/**
 * Creates or migrates the tables: completely or not at all, and only after a copy was made next to the file. Throws an
 * Error with a sentence for a file of a newer release, and for one that is older than the oldest.
 */
export function openVersion({ db, file, version, oldest, isNew, migrate, say }: Versions): void {
  const found = isNew ? 0 : versionOf(db)
  if (found === version) return
  if (found > version) {
    throw new Error(
      `${file} was made by a newer release (its tables have version ${found}, this release knows ${version}). Start that release, or put back the copy from before it: ${backupOf(file, version)}.`,
    )
  }
  if (!isNew && found < oldest) {
    throw new Error(
      `${file} was made by another version of this service (its tables have version ${found}, not ${version}). Move it away to start afresh.`,
    )
  }
  if (!isNew) copy(db, file, found)
  atomically(db, () => {
    migrate()
    db.exec(`PRAGMA user_version = ${version}`)
  })
  if (isNew) return
  const fields = { file, from: found, to: version, backup: backupOf(file, found) }
  say(fields, `The tables were upgraded from version ${found} to ${version}; a copy of the old file is kept`)
}

/** Path of the copy of a file of that version. */
const backupOf = (file: string, version: number): string => `${file}.version-${version}`

function versionOf(db: Database): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
}

/**
 * The copy is complete, contents of the log included, and on disk before it gets its name. An earlier one is replaced.
 */
function copy(db: Database, file: string, version: number): void {
  const backup = backupOf(file, version)
  const part = `${backup}.part`
  try {
    rmSync(part, { force: true })
    // SQLite keeps the mode of an empty file.
    closeSync(openSync(part, 'wx', 0o600))
    db.exec(`VACUUM INTO '${part.replaceAll("'", "''")}'`)
    flush(part)
    renameSync(part, backup)
    flush(dirname(backup))
  } catch (error) {
    rmSync(part, { force: true })
    throw new Error(
      `${file} has tables of version ${version}, and the copy that is kept before an upgrade cannot be made: ${(error as Error).message}`,
    )
  }
}

function flush(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
