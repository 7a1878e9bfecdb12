import type { StoreFault } from './health.js'

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
