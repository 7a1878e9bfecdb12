/** What the MongoDB adapters of both services have in common: the URL, the version of their documents, faults. */
import { type Collection, MongoError, MongoServerError } from 'mongodb'
import type { StoreFault } from './health.js'

const outOfDiskSpace = 14031

/** Limits the wait for a server that is down or has stopped responding. */
const patienceMs = {
  serverSelectionTimeoutMS: 5000,
  // Also how long a check of a silent server hangs before the driver looks for the server again.
  connectTimeoutMS: 5000,
  socketTimeoutMS: 10_000,
  waitQueueTimeoutMS: 10_000,
}

/** The database in the URL, else `sluice`. */
export function databaseOf(url: string): string {
  const [, named] = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^?]+)/.exec(url) ?? []
  return named === undefined ? 'sluice' : decodeURIComponent(named)
}

/** Timeouts for the client in milliseconds, without those that the URL itself sets. */
export function patienceOf(url: string): Partial<typeof patienceMs> {
  const open = Object.entries(patienceMs).filter(([name]) => !new RegExp(`[?&]${name}=`, 'i').test(url))
  return Object.fromEntries(open)
}

/** The version of the documents' shapes, as a service's settings hold it. */
export interface DocumentVersion {
  _id: string
  version: number
}

/**
 * Records the version of a service's documents in a new database. Returns a sentence about another version that is
 * found there; `what` names the documents.
 */
export async function claimVersion(
  settings: Collection<DocumentVersion>,
  what: string,
  version: number,
): Promise<string | undefined> {
  const mark = { $setOnInsert: { version } }
  await settings.updateOne({ _id: 'tables' }, mark, { upsert: true })
  const found = (await settings.findOne({ _id: 'tables' }))?.version ?? version
  if (found === version) return undefined
  return found > version
    ? `its ${what} were stored by a newer release (version ${found}, this release knows ${version}). Start that release, or restore the backup from before it`
    : `its ${what} were stored by another version of this service (version ${found}, not ${version}). Name another database to start afresh`
}

/**
 * The fault of the server: unreachable, stalled, electing its primary, or out of space. Errors of the driver itself
 * concern the connection; those of the server have a label when they are transient. Now and then the driver passes on
 * the socket's own error, such as EPIPE.
 */
export function mongodbFault(error: unknown): StoreFault | undefined {
  if (error instanceof MongoServerError) {
    if (error.code === outOfDiskSpace) return 'full'
    return error.hasErrorLabel('RetryableWriteError') ? 'away' : undefined
  }
  const isOutage =
    error instanceof MongoError || /^E[A-Z]+$/.test((error as NodeJS.ErrnoException).code ?? '')
  return isOutage ? 'away' : undefined
}
