/** What commands that read the configuration have in common. */
import { Failure, type Loaded, loadOrFail } from '../gateway/run/load.js'
import type { Log } from '../gateway/types.js'
import { Unusable } from './command.js'

/** The option that names it. */
export const CONFIG = {
  type: 'string',
  value: 'PATH',
  default: 'config',
  help: 'gateway.yaml or its folder',
} as const

/** Commands report what they find themselves. */
export const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** The configuration that a command is asked about. @throws {Unusable} with all that is wrong with it */
export async function loadInput(path: string, env: NodeJS.ProcessEnv): Promise<Loaded> {
  try {
    return await loadOrFail(path, env, quiet)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new Unusable(error.message)
  }
}
