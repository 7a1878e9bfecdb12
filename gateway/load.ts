/** From files to a configuration that can be put in force, or to everything that is wrong with it. */
import { type Config, loadConfig } from '../config/load.js'
import { formatProblem, type Problem } from '../config/problem.js'
import type { Sources } from '../config/sources.js'
import { pluginSchemas } from './plugins.js'
import { type Compiled, compile } from './snapshot.js'
import type { Log } from './types.js'

export interface Loaded {
  readonly config: Config
  readonly compiled: Compiled
  /** What was read, and what it was like then. */
  readonly sources: Sources
}

export interface Unloadable {
  readonly problems: readonly Problem[]
  readonly sources: Sources
}

/** Something the person at the terminal can mend; printed without a stack. */
export class Failure extends Error {}

/**
 * Loads, validates and compiles the configuration at `path`: gateway.yaml or its folder. Changes nothing.
 * @param policies a folder of policies to read instead of the one that gateway.yaml names
 */
export function load(path: string, env: NodeJS.ProcessEnv, log: Log, policies?: string): Loaded | Unloadable {
  const loaded = loadConfig(path, { env, plugins: pluginSchemas, policies })
  if ('problems' in loaded) return loaded
  const compiled = compile(loaded.config, log)
  return { ...loaded, ...compiled }
}

/** As `load`, for a command that cannot go on without: throws a Failure that lists the problems. */
export function loadOrFail(path: string, env: NodeJS.ProcessEnv, log: Log): Loaded {
  const loaded = load(path, env, log)
  if ('problems' in loaded) throw new Failure(listProblems(loaded.problems))
  return loaded
}

/** The problems as `file:line:col path: sentence`, one a line, and their number. */
export function listProblems(problems: readonly Problem[]): string {
  return [...problems.map(formatProblem), `${countProblems(problems.length)} in the configuration.`].join(
    '\n',
  )
}

/** `1 problem`, `2 problems`. */
export function countProblems(count: number): string {
  return count === 1 ? '1 problem' : `${count} problems`
}
