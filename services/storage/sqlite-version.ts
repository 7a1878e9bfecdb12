/** Brings a SQLite file of an older release forward, with a copy of it as it was. */
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
  /** Of the tables that this release uses; `user_version` of the file. */
  readonly version: number
  /** The oldest version that can be brought forward. */
  readonly oldest: number
  /** True of a file without tables. */
  readonly isNew: boolean
  /** Makes what this release's tables have and the file lacks. Part of one transaction with the version's number. */
  readonly migrate: () => void
  /** Gets a sentence when an older file is brought forward. */
  readonly say: (fields: object, message: string) => void
}

/**
 * Makes the tables, or brings them forward: wholly or not at all, and only after a copy was made beside the file. Throws an
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

/** Where the copy of a file of that version is kept. */
const backupOf = (file: string, version: number): string => `${file}.version-${version}`

function versionOf(db: Database): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
}

/** Whole, with what its log holds, on the disk, and with its name only then. A copy from an earlier try is replaced. */
function copy(db: Database, file: string, version: number): void {
  const backup = backupOf(file, version)
  const part = `${backup}.part`
  try {
    rmSync(part, { force: true })
    // SQLite takes over the mode of an empty file.
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
