/** The parts of a MongoDB URL, with defaults for what it leaves open. */

const DEFAULT_DATABASE = 'sluice'

/** Limits the wait for a server that is down or has stopped responding. */
const PATIENCE_MS = { serverSelectionTimeoutMS: 5000, connectTimeoutMS: 5000, socketTimeoutMS: 10_000 }

/** The database in the URL, else `sluice`. */
export function databaseOf(url: string): string {
  const [, named] = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^?]+)/.exec(url) ?? []
  return named === undefined ? DEFAULT_DATABASE : decodeURIComponent(named)
}

/** Timeouts for the client in milliseconds, without those that the URL itself sets. */
export function patienceOf(url: string): Partial<typeof PATIENCE_MS> {
  const open = Object.entries(PATIENCE_MS).filter(([name]) => !new RegExp(`[?&]${name}=`, 'i').test(url))
  return Object.fromEntries(open)
}
