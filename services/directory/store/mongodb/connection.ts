import {
  type Collection,
  type Db,
  type Filter,
  MongoBulkWriteError,
  MongoClient,
  MongoServerError,
  type OptionalUnlessRequiredId,
  type WithId,
} from 'mongodb'
import { claimVersion, databaseOf, patienceOf } from '../../../storage/mongodb.js'
import type { ListPage, Scope } from '../../model.js'
import type {
  CommitDocument,
  DeadDocument,
  DirectoryDocument,
  EventDocument,
  JournalDocument,
  LeaseDocument,
  LogDocument,
  MembershipDocument,
  PartDocument,
  RemovedDocument,
  ResourceDocument,
} from './documents.js'
import type { LinkDocument, SetupLinkDocument } from './links.js'
import type { PullDocument } from './pulls.js'

export interface Collections {
  directories: Collection<DirectoryDocument>
  journals: Collection<JournalDocument>
  commits: Collection<CommitDocument>
  resources: Collection<ResourceDocument>
  memberships: Collection<MembershipDocument>
  /** Events that the feed shows. */
  events: Collection<EventDocument>
  /** Events that a webhook has not received yet. */
  outbox: Collection<EventDocument>
  leases: Collection<LeaseDocument>
  deadLetters: Collection<DeadDocument>
  webhookLog: Collection<LogDocument>
  /** The parts of a change that do not fit into its commit document. */
  parts: Collection<PartDocument>
  removed: Collection<RemovedDocument>
  pulls: Collection<PullDocument>
  links: Collection<LinkDocument>
  setupLinks: Collection<SetupLinkDocument>
}

/** Connects and creates the indexes; every query of the adapter uses one of them or `_id`. */
export async function connectMongodb(
  url: string,
): Promise<{ client: MongoClient; collections: Collections }> {
  const client = new MongoClient(url, { ...patienceOf(url), ignoreUndefined: true })
  try {
    await client.connect()
    const db = client.db(databaseOf(url))
    const fault = await claimVersion(db.collection('directory_settings'), 'directories', version)
    if (fault) throw new Error(fault)
    const collections = named(db)
    await createIndexes(collections)
    return { client, collections }
  } catch (error) {
    await client.close()
    throw new Error(`MONGODB_URL: the server cannot be used: ${(error as Error).message}`)
  }
}

/** Version of the documents' shapes. Lower ones are those of builds before the first release. */
const version = 3

function named(db: Db): Collections {
  return {
    directories: db.collection('directory_connections'),
    journals: db.collection('directory_journals'),
    commits: db.collection('directory_commits'),
    resources: db.collection('directory_resources'),
    memberships: db.collection('directory_memberships'),
    events: db.collection('directory_events'),
    outbox: db.collection('directory_outbox'),
    leases: db.collection('directory_leases'),
    deadLetters: db.collection('directory_dead_letters'),
    webhookLog: db.collection('directory_webhook_log'),
    parts: db.collection('directory_commit_parts'),
    removed: db.collection('directory_removed'),
    pulls: db.collection('directory_pulls'),
    links: db.collection('directory_consent_links'),
    setupLinks: db.collection('directory_setup_links'),
  }
}

async function createIndexes(collections: Collections): Promise<void> {
  const { directories, commits, resources, memberships, parts, removed } = collections
  const { events, outbox, leases, deadLetters, webhookLog, pulls, links, setupLinks } = collections
  await directories.createIndex({ tenant: 1, product: 1, created: 1, _id: 1 })
  await directories.createIndex({ product: 1, created: 1, _id: 1 })
  await directories.createIndex({ created: 1, _id: 1 })
  await commits.createIndex({ 'pending.at': 1 }, { sparse: true })
  await commits.createIndex({ deletedAt: 1 })
  await resources.createIndex({ directory: 1, type: 1, created: 1, _id: 1 })
  await resources.createIndex({ tenant: 1, product: 1, type: 1, created: 1, _id: 1 })
  await resources.createIndex({ directory: 1, type: 1, terms: 1, created: 1, _id: 1 })
  await resources.createIndex({ deletedAt: 1 })
  await memberships.createIndex({ group: 1, user: 1 })
  await memberships.createIndex({ user: 1, group: 1 })
  await memberships.createIndex({ deletedAt: 1 })
  await events.createIndex({ directory: 1, sequence: 1 })
  await events.createIndex({ created: 1 })
  await outbox.createIndex({ directory: 1, sequence: 1 })
  await leases.createIndex({ directory: 1, fence: 1 })
  await deadLetters.createIndex({ directory: 1, failed: 1, _id: 1 })
  await deadLetters.createIndex({ tenant: 1, product: 1, failed: 1, _id: 1 })
  await deadLetters.createIndex({ failed: 1 })
  await deadLetters.createIndex({ replay: 1, directory: 1, webhookId: 1, sequence: 1 })
  await webhookLog.createIndex({ directory: 1, created: 1, _id: 1 })
  await webhookLog.createIndex({ tenant: 1, product: 1, created: 1, _id: 1 })
  await webhookLog.createIndex({ created: 1 })
  await parts.createIndex({ commit: 1, _id: 1 })
  await removed.createIndex({ purgedAt: 1 })
  await removed.createIndex({ firstUndelivered: 1 }, { sparse: true })
  await pulls.createIndex({ directory: 1, fence: 1 })
  await links.createIndex({ directory: 1 })
  await links.createIndex({ until: 1 })
  await setupLinks.createIndex({ directory: 1, created: 1, _id: 1 })
  await setupLinks.createIndex({ until: 1 })
}

/** A page in the order of creation, then id; with `newestBy`, by this time with the newest first. */
export function readPage<T extends { _id: string }>(
  collection: Collection<T>,
  which: object,
  { after, offset, limit }: ListPage,
  newestBy?: 'created' | 'failed',
): Promise<WithId<T>[]> {
  const time = newestBy ?? 'created'
  const [from, beyond, way] = newestBy ? (['$lte', '$lt', -1] as const) : (['$gte', '$gt', 1] as const)
  // The first bound lets an index start there.
  const placed = after && {
    [time]: { [from]: after.created },
    $or: [{ [time]: { [beyond]: after.created } }, { _id: { [beyond]: after.id } }],
  }
  const found = collection.find({ ...which, ...placed } as Filter<T>)
  return found
    .sort({ [time]: way, _id: way })
    .skip(offset)
    .limit(limit)
    .toArray()
}

/** A scope as a filter. */
export function scoped(scope: Scope): { directory: string } | { tenant: string; product: string } {
  return 'directoryId' in scope
    ? { directory: scope.directoryId }
    : { tenant: scope.tenant, product: scope.product }
}

/** Inserts documents in bulk; those that already exist are a repeat, not an error. */
export async function insertNew<T extends { _id: string }>(
  collection: Collection<T>,
  documents: readonly T[],
): Promise<void> {
  if (documents.length === 0) return
  try {
    await collection.insertMany(documents as unknown as OptionalUnlessRequiredId<T>[], { ordered: false })
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError)) throw error
    const failures = [error.writeErrors].flat()
    if (failures.some(failure => failure.code !== duplicateKey)) throw error
  }
}

/** False when a document with this `_id` already exists. */
export async function insertIfNew<T extends { _id: string }>(
  collection: Collection<T>,
  document: T,
): Promise<boolean> {
  try {
    await collection.insertOne(document as unknown as OptionalUnlessRequiredId<T>)
    return true
  } catch (error) {
    if (error instanceof MongoServerError && error.code === duplicateKey) return false
    throw error
  }
}

const duplicateKey = 11000
