import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { storedKey } from '../storage/data-folder.js'
import { hashKey } from './secrets.js'

const remedy = 'Restore it from a backup'

/**
 * The hash of the management key and the file that holds it; `made` is the key itself if this call made it (it is
 * never shown again).
 */
export function managementKey(folder: string): { hash: Buffer; made: string | undefined; file: string } {
  const key = `sk_${randomBytes(32).toString('base64url')}`
  const file = join(folder, 'api-key.sha256')
  const { text, made } = storedKey(file, { remedy, fresh: hashKey(key) })
  return { hash: Buffer.from(text, 'base64'), made: made ? key : undefined, file }
}

/** The encryption key of this data folder, made at first start. */
export function encryptionKey(folder: string): Buffer {
  return Buffer.from(storedKey(join(folder, 'encryption.key'), { remedy }).text, 'base64')
}
