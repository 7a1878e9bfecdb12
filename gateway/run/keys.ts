/** The keys that encrypt the services' stored data. */
import { Failure } from '../errors.js'

/** How a rotation ended. */
export interface Rotation {
  readonly directories: number
  readonly reencrypted: number
  /** Ids of directories with a secret that none of the keys decrypts. */
  readonly unreadable: readonly string[]
  /** True when everything readable is encrypted with the first key. */
  readonly done: boolean
}

/**
 * Re-encrypts the directory service's stored secrets with the first key of ENCRYPTION_KEY; the service may be running
 * meanwhile. @throws {Failure}
 */
export async function rotateKeys(env: NodeJS.ProcessEnv): Promise<Rotation> {
  const directory = await import('../../services/directory/index.js')
  try {
    return await directory.rotateKeys({ env })
  } catch (error) {
    throw new Failure(`The keys cannot be rotated: ${(error as Error).message}.`, { cause: error })
  }
}
