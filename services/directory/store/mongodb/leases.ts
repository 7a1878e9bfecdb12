import type { Collection, Filter } from 'mongodb'
import { insertIfNew } from './connection.js'

/**
 * A lease on a directory's work. `_id` is made of directory and fence; only its holder writes it. Taking a lease is an
 * insert, which is atomic on every server.
 */
export interface Leased {
  _id: string
  directory: string
  fence: number
  /** Epoch ms. */
  until: number
}

/** The most recent lease of a directory. */
export const newestLease = <T extends Leased>(
  leases: Collection<T>,
  directory: string,
): Promise<T | undefined> =>
  leases
    .find({ directory } as Filter<T>)
    .sort({ fence: -1 })
    .limit(1)
    .next()
    .then(found => (found as T | null) ?? undefined)

/**
 * Takes the lease after `last` and returns its fence, or undefined when another process was faster. The newest lease
 * is never deleted, so looking again shows whether this one came too late.
 */
export async function takeLease<T extends Leased>(
  leases: Collection<T>,
  last: T,
  until: number,
): Promise<number | undefined> {
  const { directory } = last
  const fence = last.fence + 1
  const lease = { ...last, _id: leaseId(directory, fence), fence, until }
  if (!(await insertIfNew(leases, lease))) return undefined
  if ((await newestLease(leases, directory))?.fence !== fence) return undefined
  await leases.deleteMany({ directory, fence: { $lt: fence } } as Filter<T>)
  return fence
}

export const leaseId = (directory: string, fence: number): string => `${directory}/${fence}`
