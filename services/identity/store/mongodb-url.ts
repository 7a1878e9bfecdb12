/** What a MongoDB URL says, and what it leaves open. */

const DEFAULT_DATABASE = 'sluice'

/** Bounds the wait for a server that is down or has stopped answering. */
const PATIENCE_MS = { serverSelectionTimeoutMS: 5000, connectTimeoutMS: 5000, socketTimeoutMS: 10_000 }

/** The database the URL names, else `sluice`. */
export function databaseOf(url: string): string {
  const [, named] = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^?]+)/.exec(url) ?? []
  return named === undefined ? DEFAULT_DATABASE : decodeURIComponent(named)
}

/** Client options for how long to wait, in milliseconds; what the URL itself sets is left to it. */
export function patienceOf(url: string): Partial<typeof PATIENCE_MS> {
  const open = Object.entries(PATIENCE_MS).filter(([name]) => !new RegExp(`[?&]${name}=`, 'i').test(url))
  return Object.fromEntries(open)
}
