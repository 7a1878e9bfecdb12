import { randomBytes, randomUUID } from 'node:crypto'
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashKey } from './secrets.js'

/** Makes the folder for keys and the embedded database, readable by its owner only. */
export function openDataFolder(folder: string): void {
  try {
    if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) chmodSync(folder, 0o700)
  } catch (error) {
    throw new Error(`DATA_DIR ${folder} cannot be used: ${(error as Error).message}`)
  }
}

/**
 * The hash of the management key and the file that holds it; `made` is the key itself if this call made it (it is
 * never shown again).
 */
export function managementKey(folder: string): { hash: Buffer; made: string | undefined; file: string } {
  const key = `sk_${randomBytes(32).toString('base64url')}`
  const file = join(folder, 'api-key.sha256')
  const { bytes, made } = keptOnce(file, hashKey(key))
  return { hash: bytes, made: made ? key : undefined, file }
}

/** The encryption key of this data folder, made at first start. */
export function encryptionKey(folder: string): Buffer {
  return keptOnce(join(folder, 'encryption.key'), randomBytes(32)).bytes
}

/** Writes 32 bytes unless the file exists already. */
function keptOnce(file: string, fresh: Buffer): { bytes: Buffer; made: boolean } {
  if (!existsSync(file) && keep(file, `${fresh.toString('base64')}\n`)) return { bytes: fresh, made: true }
  const text = readFileSync(file, 'utf8').trim()
  if (isKey(text)) return { bytes: Buffer.from(text, 'base64'), made: false }
  throw new Error(`${file} is damaged: it must hold 32 bytes in base64. Restore it from a backup`)
}

/** Whether a text is 32 bytes in base64. */
export const isKey = (text: string): boolean => /^[A-Za-z0-9+/]{43}=$/.test(text)

/**
 * If two processes start at once, one creates the file and both read it: the complete file is linked into place.
 * Returns false when another process created it.
 */
function keep(file: string, text: string): boolean {
  const options = { flag: 'wx', mode: 0o600 } as const
  const fresh = `${file}.${randomUUID()}`
  try {
    writeFileSync(fresh, text, options)
    try {
      linkSync(fresh, file)
    } catch (error) {
      if (isThere(error)) return false
      // Some network file systems do not support hard links.
      writeFileSync(file, text, options)
    } finally {
      rmSync(fresh)
    }
    return true
  } catch (error) {
    if (isThere(error)) return false
    throw new Error(`${file} cannot be written: ${(error as Error).message}`)
  }
}

const isThere = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EEXIST'
