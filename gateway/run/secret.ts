/** The key of the hashes that replace e-mail addresses, paths and header values in counter keys. */
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from './load.js'
import { variable } from './variable.js'

/**
 * Derived from the first key of `ENCRYPTION_KEY`, so that several gateways on one Redis agree; otherwise stored in the
 * data folder, where the first start creates it. Without embedded services there is no data folder unless `DATA_DIR`
 * names one: the secret then lives as long as the gateway. @throws {Failure} when a key is invalid
 */
export function hashSecret(env: NodeJS.ProcessEnv, hasServices: boolean): Buffer {
  const [given] = encryptionKeys(variable('ENCRYPTION_KEY', env))
  if (given !== undefined) return createHmac('sha256', given).update('sluice counter keys').digest()
  const dataDir = variable('DATA_DIR', env)
  const folder = dataDir || 'data'
  const file = join(folder, 'gateway.key')
  // A secret stored by an earlier start stays in use.
  if (!dataDir && !hasServices && !existsSync(file)) return randomBytes(32)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (!existsSync(file)) keep(file, randomBytes(32).toString('base64'))
  const kept = readFileSync(file, 'utf8').trim()
  if (isKey(kept)) return Buffer.from(kept, 'base64')
  throw new Failure(
    `${file} is damaged: it must hold 32 bytes in base64. Restore it, or delete it to start counting afresh.`,
  )
}

/** The keys of ENCRYPTION_KEY, as written; only the first is used here. */
function encryptionKeys(text: string): string[] {
  const keys = text.split(/[\s,]+/).filter(Boolean)
  if (keys.every(isKey)) return keys
  throw new Failure(
    'ENCRYPTION_KEY must be 32 bytes in base64, as printed by: openssl rand -base64 32. Several are separated by commas.',
  )
}

function isKey(text: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(text)
}

/**
 * If two processes start for the first time, one creates the file and both read it. The file is linked into place once
 * it is complete.
 */
function keep(file: string, text: string): void {
  const options = { flag: 'wx', mode: 0o600 } as const
  const fresh = `${file}.${randomUUID()}`
  writeFileSync(fresh, text, options)
  try {
    linkSync(fresh, file)
  } catch (error) {
    // Some network file systems do not support hard links.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') writeFileSync(file, text, options)
  } finally {
    rmSync(fresh)
  }
}
