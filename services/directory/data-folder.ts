import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
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

/** The hash of the management key, and the key itself when this call made it (it is never shown again), with the file that holds the hash. */
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

/** Writes 32 bytes unless the file exists already; `wx` lets exactly one of two racing starts win. */
function keptOnce(file: string, fresh: Buffer): { bytes: Buffer; made: boolean } {
  try {
    writeFileSync(file, `${fresh.toString('base64')}\n`, { flag: 'wx', mode: 0o600 })
    return { bytes: fresh, made: true }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new Error(`${file} cannot be written: ${(error as Error).message}`)
    }
  }
  const bytes = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64')
  if (bytes.length !== 32) throw new Error(`${file} is damaged: it must hold 32 bytes in base64`)
  return { bytes, made: false }
}
