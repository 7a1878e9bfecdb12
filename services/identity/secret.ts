/** The secret behind cookies and form tokens, and what is signed with it. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * From `ENCRYPTION_KEY`, so that several processes know each other's cookies; else kept in DATA_DIR, where the first
 * start makes it.
 */
export function serviceSecret(env: NodeJS.ProcessEnv): Buffer {
  if (env.ENCRYPTION_KEY) return Buffer.from(env.ENCRYPTION_KEY)
  const folder = env.DATA_DIR || 'data'
  const file = join(folder, 'identity.key')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  try {
    // Of two first starts one makes the file, and both read it.
    writeFileSync(file, randomBytes(32).toString('base64'), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return Buffer.from(readFileSync(file, 'utf8'))
}

/** HMAC-SHA256 over a purpose and its parts, in base64url. */
export function signature(secret: Buffer, purpose: string, ...parts: readonly string[]): string {
  return createHmac('sha256', secret)
    .update(JSON.stringify([`sluice identity ${purpose}`, ...parts]))
    .digest('base64url')
}

/** Compares in a time that tells nothing of where the texts differ. */
export function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
