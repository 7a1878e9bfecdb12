/** Identities in one SQLite file, for running without a database server. */
import { closeSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'libsql'
import { openFolder } from '../../storage/data-folder.js'
import { atomically, openTables, sqliteFault, type Tables } from '../../storage/sqlite.js'
import {
  type Identifiers,
  IdentifierTaken,
  type IdentityStore,
  type StoredIdentity,
  StoreUnavailable,
  type UniqueKeys,
} from './contract.js'

const TABLES: Tables = {
  one: 'identities',
  create: `
  CREATE TABLE identities (
    id TEXT PRIMARY KEY, project TEXT NOT NULL, schema_id TEXT NOT NULL, traits TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, version INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX identities_by_project ON identities (project, id);
  CREATE TABLE unique_keys (
    unique_key TEXT PRIMARY KEY, trait TEXT NOT NULL, identity_id TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX unique_keys_by_identity ON unique_keys (identity_id);
  CREATE TABLE identifier_revision (revision TEXT PRIMARY KEY) WITHOUT ROWID;`,
  version: 1,
}

/** The columns under their names in StoredIdentity. */
const COLUMNS =
  'id, project, schema_id AS schemaId, traits, created_at AS createdAt, updated_at AS updatedAt, version'

/** Opens or creates the file, readable by its owner only. Throws when two identities share a new identifier. */
export async function openSqliteStore(file: string, identifiers: Identifiers): Promise<IdentityStore> {
  openFolder(dirname(file))
  closeSync(openSync(file, 'a', 0o600))
  const store = new SqliteStore(new Database(file))
  try {
    store.makeTables(file)
    store.keepIdentifiers(identifiers)
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}

class SqliteStore implements IdentityStore {
  readonly #db: Database.Database

  constructor(db: Database.Database) {
    this.#db = db
    // Checkpoints of 1 MiB: a larger one would block requests for longer.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; PRAGMA wal_autocheckpoint = 250;')
  }

  /** Throws an Error with a sentence when the tables have another version. */
  makeTables(file: string): void {
    openTables(this.#db, file, TABLES)
  }

  /**
   * Brings the unique keys in line with the schemas' identifier traits, which may have changed since the last start.
   */
  keepIdentifiers(identifiers: Identifiers): void {
    this.#atomically(() => {
      const { revision } = identifiers
      if (this.#db.prepare('SELECT 1 FROM identifier_revision WHERE revision = ?').get(revision)) return
      this.#db.exec('DELETE FROM unique_keys; DELETE FROM identifier_revision;')
      this.#db.prepare('INSERT INTO identifier_revision VALUES (?)').run(revision)
      for (const row of this.#db.prepare('SELECT id, project, traits FROM identities').iterate()) {
        const { id, project, traits } = row as Pick<StoredIdentity, 'id' | 'project' | 'traits'>
        this.#claim(id, identifiers.keysOf(project, traits))
      }
    })
  }

  async create(identity: StoredIdentity, keys: UniqueKeys): Promise<void> {
    this.#atomically(() => {
      this.#claim(identity.id, keys)
      this.#db
        .prepare(
          'INSERT INTO identities VALUES (@id, @project, @schemaId, @traits, @createdAt, @updatedAt, @version)',
        )
        .run(identity)
    })
  }

  async find(project: string, id: string): Promise<StoredIdentity | undefined> {
    const sql = `SELECT ${COLUMNS} FROM identities WHERE id = ? AND project = ?`
    const [found] = reached(() => this.#db.prepare(sql).all(id, project) as StoredIdentity[])
    return found
  }

  async list(project: string, after: string | undefined, limit: number): Promise<StoredIdentity[]> {
    const sql = `SELECT ${COLUMNS} FROM identities WHERE project = ? AND id > ? ORDER BY id LIMIT ?`
    return reached(() => this.#db.prepare(sql).all(project, after ?? '', limit) as StoredIdentity[])
  }

  async replace(identity: StoredIdentity, keys: UniqueKeys): Promise<boolean> {
    return this.#atomically(() => {
      const { changes } = this.#db
        .prepare(
          `UPDATE identities SET schema_id = @schemaId, traits = @traits, updated_at = @updatedAt, version = @version
           WHERE id = @id AND project = @project AND version = @version - 1`,
        )
        .run(identity)
      if (changes === 0) return false
      this.#unclaim(identity.id)
      this.#claim(identity.id, keys)
      return true
    })
  }

  async remove(project: string, id: string, version?: number): Promise<boolean> {
    return this.#atomically(() => {
      const { changes } = this.#db
        .prepare('DELETE FROM identities WHERE id = ? AND project = ? AND version = COALESCE(?, version)')
        .run(id, project, version ?? null)
      if (changes > 0) this.#unclaim(id)
      return changes > 0
    })
  }

  async restore(): Promise<void> {
    this.#db.exec(`PRAGMA user_version = ${TABLES.version}`)
  }

  async close(): Promise<void> {
    this.#db.close()
  }

  #claim(id: string, keys: UniqueKeys): void {
    for (const [trait, key] of keys) {
      const { changes } = this.#db
        .prepare('INSERT INTO unique_keys VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
        .run(key, trait, id)
      if (changes === 0) throw new IdentifierTaken(trait)
    }
  }

  #unclaim(id: string): void {
    this.#db.prepare('DELETE FROM unique_keys WHERE identity_id = ?').run(id)
  }

  #atomically<Result>(work: () => Result): Result {
    return reached(() => atomically(this.#db, work))
  }
}

/** Runs `work`; a failing disk or file becomes StoreUnavailable. */
function reached<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    const fault = sqliteFault(error)
    if (fault === undefined) throw error
    throw new StoreUnavailable(fault, (error as Error).message, { cause: error })
  }
}
