/** The key of the hashes that replace e-mail addresses, paths and header values in counter keys. */
import { createHmac, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isKey, openFolder, storedKey, tryFolder } from '../../services/storage/data-folder.js'
import { Failure } from '../errors.js'
import { variable } from './process.js'

/**
 * Derived from the first key of `ENCRYPTION_KEY`, so that several gateways on one Redis agree; otherwise stored in the
 * data folder, where the first start creates it. Without embedded services there is no data folder unless `DATA_DIR`
 * names one: the secret then lives as long as the gateway. @throws {Failure} when a key is invalid or the data
 * folder cannot be used
 */
export function hashSecret(env: NodeJS.ProcessEnv, hasServices: boolean): Buffer {
  const [given] = encryptionKeys(variable('ENCRYPTION_KEY', env))
  if (given !== undefined) return createHmac('sha256', given).update('sluice counter keys').digest()
  const dataDir = variable('DATA_DIR', env)
  const folder = dataDir || 'data'
  const file = join(folder, 'gateway.key')
  // A secret stored by an earlier start stays in use.
  if (!dataDir && !hasServices && !existsSync(file)) return randomBytes(32)
  return orFailure(() => {
    openFolder(folder)
    const { text } = storedKey(file, { remedy: 'Restore it, or delete it to start counting afresh' })
    return Buffer.from(text, 'base64')
  })
}

/** Why `hashSecret` would throw, as far as that shows without making a folder or a key. */
export function secretFault(env: NodeJS.ProcessEnv, hasServices: boolean): string | undefined {
  try {
    const [given] = encryptionKeys(variable('ENCRYPTION_KEY', env))
    const dataDir = variable('DATA_DIR', env)
    if (dataDir !== '' && (hasServices || given === undefined)) orFailure(() => tryFolder(dataDir))
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Errors of the data folder end without a full stop. */
function orFailure<T>(use: () => T): T {
  try {
    return use()
  } catch (error) {
    throw new Failure(`${(error as Error).message}.`)
  }
}

/** The keys of ENCRYPTION_KEY, as written; only the first is used here. */
function encryptionKeys(text: string): string[] {
  const keys = text.split(/[\s,]+/).filter(Boolean)
  if (keys.every(isKey)) return keys
  throw new Failure(
    'ENCRYPTION_KEY must be 32 bytes in base64, as printed by: openssl rand -base64 32. Several are separated by commas.',
  )
}
