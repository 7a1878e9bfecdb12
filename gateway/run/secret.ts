/** The secret that keys the hashes which stand for e-mail addresses, paths and header values in counter keys. */
import { createHmac, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Derived from `ENCRYPTION_KEY`, so that several gateways on one Redis agree; else kept in the data folder, where the
 * first start makes it. Without embedded services there is no data folder unless `DATA_DIR` names one: the secret then
 * lives as long as the gateway.
 */
export function hashSecret(env: NodeJS.ProcessEnv, hasServices: boolean): Buffer {
  const given = env.ENCRYPTION_KEY
  if (given) return createHmac('sha256', given).update('sluice counter keys').digest()
  const folder = env.DATA_DIR || 'data'
  const file = join(folder, 'gateway.key')
  // What an earlier start has kept goes on to count.
  if (!env.DATA_DIR && !hasServices && !existsSync(file)) return randomBytes(32)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  try {
    // `wx` fails when the file is there: of two first starts, one makes it and both read it.
    writeFileSync(file, randomBytes(32).toString('base64'), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return Buffer.from(readFileSync(file, 'utf8'), 'base64')
}
