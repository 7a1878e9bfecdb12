/** Shared by commands that read the configuration. */
import { type Configuration, loadOrFail } from '../gateway/configured/load.js'
import { Failure } from '../gateway/errors.js'
import type { Log } from '../gateway/types.js'
import { Unusable } from './command.js'

/** A log that discards everything: commands report their findings themselves. */
export const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** Loads the configuration that a command works on. @throws {Unusable} with all its problems */
export async function loadInput(path: string, env: NodeJS.ProcessEnv): Promise<Configuration> {
  try {
    return await loadOrFail(path, env, quiet)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new Unusable(error.message)
  }
}
