/** Loads the policy for a replay: a whole configuration, or a folder of policies combined with one. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { listProblems } from '../../config/problem.js'
import { type Configuration, load } from '../../gateway/configured/load.js'
import { Unusable } from '../command.js'
import { quiet } from '../config.js'

/**
 * @param place a folder with gateway.yaml, that file itself, or a folder of policy files
 * @param configPath the configuration with which a folder of policy files is combined
 * @throws {Unusable} with all problems of the configuration
 */
export async function loadPolicy(
  place: string,
  configPath: string,
  env: NodeJS.ProcessEnv,
): Promise<Configuration> {
  const loaded = isConfiguration(place)
    ? await load(place, env, quiet)
    : await load(configPath, env, quiet, { policies: place })
  if ('problems' in loaded) throw new Unusable(listProblems(loaded.problems))
  return loaded
}

function isConfiguration(place: string): boolean {
  if (!existsSync(place)) throw new Unusable(`There is no folder ${place}.`)
  return statSync(place).isFile() || existsSync(join(place, 'gateway.yaml'))
}
