/** The encryption keys of what the services keep. */
import { Failure } from './load.js'

/** How a rotation ended. */
export interface Rotation {
  readonly directories: number
  readonly reencrypted: number
  /** Ids of directories with a secret that none of the keys opens. */
  readonly unreadable: readonly string[]
  /** True when all that can be read is under the first key. */
  readonly done: boolean
}

/** Encrypts what the directory service keeps with the first key of ENCRYPTION_KEY; it may run meanwhile. @throws {Failure} */
export async function rotateKeys(env: NodeJS.ProcessEnv): Promise<Rotation> {
  const directory = await import('../../services/directory/index.js')
  try {
    return await directory.rotateKeys({ env })
  } catch (error) {
    throw new Failure(`The keys cannot be rotated: ${(error as Error).message}.`, { cause: error })
  }
}
