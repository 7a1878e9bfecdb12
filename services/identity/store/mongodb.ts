/**
 * Identities in MongoDB or a server that speaks its protocol. One document holds a whole identity, including its
 * unique keys, so that every write is atomic without a transaction.
 */
import { createHash } from 'node:crypto'
import { type Collection, type Db, MongoClient, MongoServerError } from 'mongodb'
import {
  claimVersion,
  type DocumentVersion,
  databaseOf,
  mongodbFault,
  patienceOf,
} from '../../storage/mongodb.js'
import { createMutex } from '../../storage/mutex.js'
import {
  type Identifiers,
  IdentifierTaken,
  type IdentityStore,
  type StoredIdentity,
  StoreUnavailable,
  type UniqueKeys,
} from './contract.js'

const DUPLICATE_KEY = 11000
const UNIQUE_PREFIX = 'unique_'
const IDENTIFIERS = 'identifiers'

interface IdentityDocument {
  _id: string
  project: string
  schema_id: string
  traits: string
  created_at: string
  updated_at: string
  version: number
  /** `unique_<trait>`: one field, with one unique index, for each identifier trait. */
  [unique: `unique_${string}`]: string
}

/** Version of the documents' shapes. */
const VERSION = 1

/** The revision of the identifier traits from which the unique keys were made. */
interface IdentifierRevision {
  _id: typeof IDENTIFIERS
  revision: string
}

/** Connects and updates the indexes. Throws StoreUnavailable. */
export async function openMongoStore(url: string, identifiers: Identifiers): Promise<IdentityStore> {
  const client = new MongoClient(url, { ...patienceOf(url), appName: 'sluice-identity' })
  const store = new MongoStore(client, client.db(databaseOf(url)), identifiers)
  try {
    await store.prepare()
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}

class MongoStore implements IdentityStore {
  readonly #client: MongoClient
  readonly #identities: Collection<IdentityDocument>
  readonly #revisions: Collection<IdentifierRevision>
  readonly #versions: Collection<DocumentVersion>
  readonly #identifiers: Identifiers
  /**
   * MongoDB compares and writes a document in one step; some compatible servers (FerretDB 1) use two, and this keeps
   * two writers apart there.
   */
  readonly #mutex = createMutex()
  readonly #fields: ReadonlyMap<string, `unique_${string}`>

  constructor(client: MongoClient, db: Db, identifiers: Identifiers) {
    this.#client = client
    this.#identities = db.collection('identities')
    this.#revisions = db.collection('identity_settings')
    this.#versions = db.collection('identity_settings')
    this.#identifiers = identifiers
    this.#fields = new Map(identifiers.traits.map(trait => [trait, uniqueField(trait)]))
  }

  /** Brings indexes and unique keys in line with the schemas' identifier traits. */
  async prepare(): Promise<void> {
    await reached(async () => {
      const fault = await claimVersion(this.#versions, 'identities', VERSION)
      if (fault) throw new Error(`MONGODB_URL: ${fault}`)
      await this.#identities.createIndex({ project: 1, _id: 1 })
      const wanted = new Set<string>(this.#fields.values())
      for (const { name } of await this.#identities.indexes()) {
        if (name?.startsWith(UNIQUE_PREFIX) && !wanted.has(name)) await this.#identities.dropIndex(name)
      }
      const { revision } = this.#identifiers
      const isCurrent = (await this.#revisions.findOne({ _id: IDENTIFIERS, revision })) !== null
      if (!isCurrent) {
        // Deleted first, so that an interrupted start is repeated in full.
        await this.#revisions.deleteOne({ _id: IDENTIFIERS })
        await this.#renewKeys()
      }
      for (const field of this.#fields.values()) {
        await this.#identities
          .createIndex({ [field]: 1 }, { unique: true, name: field })
          .catch(error => this.#rethrow(error))
      }
      if (!isCurrent) await this.#revisions.replaceOne({ _id: IDENTIFIERS }, { revision }, { upsert: true })
    })
  }

  /** Updates the unique keys of identities that were written under other identifier traits. */
  async #renewKeys(): Promise<void> {
    for await (const document of this.#identities.find()) {
      const { _id: id, version } = document
      const keys = this.#uniqueFields(id, this.#identifiers.keysOf(document.project, document.traits))
      if (Object.entries(keys).every(([field, key]) => document[field as keyof typeof keys] === key)) continue
      await this.#identities
        .updateOne({ _id: id, version }, { $set: keys })
        .catch(error => this.#rethrow(error))
    }
  }

  async create(identity: StoredIdentity, keys: UniqueKeys): Promise<void> {
    await reached(() =>
      this.#identities.insertOne(this.#document(identity, keys)).catch(error => this.#rethrow(error)),
    )
  }

  async find(project: string, id: string): Promise<StoredIdentity | undefined> {
    const document = await reached(() => this.#identities.findOne({ _id: id, project }))
    return document ? stored(document) : undefined
  }

  async list(project: string, after: string | undefined, limit: number): Promise<StoredIdentity[]> {
    const documents = await reached(() =>
      this.#identities
        .find({ project, ...(after === undefined ? {} : { _id: { $gt: after } }) })
        .sort({ project: 1, _id: 1 })
        .limit(limit)
        .toArray(),
    )
    return documents.map(document => stored(document))
  }

  async replace(identity: StoredIdentity, keys: UniqueKeys): Promise<boolean> {
    const { id, project, version } = identity
    const { matchedCount } = await this.#mutex(id, () =>
      reached(() =>
        this.#identities
          .replaceOne({ _id: id, project, version: version - 1 }, this.#document(identity, keys))
          .catch(error => this.#rethrow(error)),
      ),
    )
    return matchedCount > 0
  }

  async remove(project: string, id: string, version?: number): Promise<boolean> {
    const wanted = { _id: id, project, ...(version === undefined ? {} : { version }) }
    const { deletedCount } = await this.#mutex(id, () => reached(() => this.#identities.deleteOne(wanted)))
    return deletedCount > 0
  }

  async restore(): Promise<void> {
    await this.#client.db().command({ ping: 1 })
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  #document(identity: StoredIdentity, keys: UniqueKeys): IdentityDocument {
    return {
      _id: identity.id,
      project: identity.project,
      schema_id: identity.schemaId,
      traits: identity.traits,
      created_at: identity.createdAt,
      updated_at: identity.updatedAt,
      version: identity.version,
      ...this.#uniqueFields(identity.id, keys),
    }
  }

  #uniqueFields(id: string, keys: UniqueKeys): Record<`unique_${string}`, string> {
    return Object.fromEntries(
      [...this.#fields].map(([trait, field]) => [field, keys.get(trait) ?? noKey(id)]),
    )
  }

  #rethrow(error: unknown): never {
    if (isDuplicate(error)) {
      const taken = [...this.#fields].find(([, field]) => error.message.includes(field))
      throw new IdentifierTaken(taken?.[0] ?? this.#identifiers.traits.join(' or '))
    }
    throw error
  }
}

/** FerretDB reports duplicates found while an index is built as an internal error. */
function isDuplicate(error: unknown): error is MongoServerError {
  return (
    error instanceof MongoServerError &&
    (error.code === DUPLICATE_KEY || /UNIQUE constraint/.test(error.message))
  )
}

/** A trait's path may contain characters that a field name may not. */
function uniqueField(trait: string): `unique_${string}` {
  return `unique_${createHash('sha256').update(trait).digest('hex').slice(0, 16)}`
}

/** Stands for "no value", so that the index needs no option that only some servers have. */
function noKey(id: string): string {
  return `none:${id}`
}

function stored(document: IdentityDocument): StoredIdentity {
  return {
    id: document._id,
    project: document.project,
    schemaId: document.schema_id,
    traits: document.traits,
    createdAt: document.created_at,
    updatedAt: document.updated_at,
    version: document.version,
  }
}

/** Runs `work`; a server that is away or has no room becomes StoreUnavailable. */
async function reached<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const fault = mongodbFault(error)
    if (fault === undefined) throw error
    const problem = fault === 'full' ? 'has no room left on its disk' : 'cannot be reached'
    throw new StoreUnavailable(fault, `the identity store (MONGODB_URL) ${problem}`, { cause: error })
  }
}
