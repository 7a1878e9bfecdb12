/** The secrets behind cookies and form tokens, and the signatures made with them. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { readEncryptionKeys } from '../keys.js'
import { openFolder, storedKey } from '../storage/data-folder.js'

/**
 * From `ENCRYPTION_KEY`, so that several processes accept each other's cookies; else from DATA_DIR, where the first
 * start makes one. Throws an Error with a sentence about an invalid key.
 */
export function serviceSecrets({ ENCRYPTION_KEY, DATA_DIR }: NodeJS.ProcessEnv): Buffer[] {
  const keys = readEncryptionKeys(ENCRYPTION_KEY)
  return (keys.length > 0 ? keys : [ownKey(DATA_DIR || 'data')]).map(key => Buffer.from(key))
}

function ownKey(folder: string): string {
  openFolder(folder)
  const remedy = 'Restore it, or delete it: open forms must then be loaded again'
  return storedKey(join(folder, 'identity.key'), { remedy }).text
}

/** Signs with the first of its secrets, and accepts signatures made with any of them. */
export class Signer {
  readonly #secrets: readonly Buffer[]

  constructor(secrets: readonly Buffer[]) {
    this.#secrets = secrets
  }

  /** HMAC-SHA256 over a purpose and its parts, in base64url. */
  sign(purpose: string, ...parts: readonly string[]): string {
    return this.#signatures(purpose, parts)[0] as string
  }

  /** Compares in constant time. */
  hasSigned(given: string, purpose: string, ...parts: readonly string[]): boolean {
    const same = this.#signatures(purpose, parts).map(signature => isSame(given, signature))
    return same.includes(true)
  }

  #signatures(purpose: string, parts: readonly string[]): string[] {
    const text = JSON.stringify([`sluice identity ${purpose}`, ...parts])
    return this.#secrets.map(secret => createHmac('sha256', secret).update(text).digest('base64url'))
  }
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
