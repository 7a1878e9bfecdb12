/** Loads files into a configuration that can be activated, or into the list of all its problems. */
import { isDeepStrictEqual } from 'node:util'
import { ConfigFiles, type FileContents } from '../../config/files.js'
import { type Config, loadConfig } from '../../config/load.js'
import { markOf, type Sources } from '../../config/marks.js'
import { readPluginList } from '../../config/plugin-list.js'
import { listProblems, type Problem } from '../../config/problem.js'
import { Failure } from '../errors.js'
import type { Log } from '../types.js'
import { type Compiled, compile } from './compile.js'
import { tryLimiters } from './plugins.js'
import { type LoadedPlugins, loadPlugins } from './third-party/load.js'

export interface Configuration {
  readonly config: Config
  readonly compiled: Compiled
  /** The plugins available to the configuration, built-in and third-party. */
  readonly plugins: LoadedPlugins
  /** The files that were read, with their marks. */
  readonly sources: Sources
  /** File contents, for another process that must load the same configuration. */
  readonly contents: FileContents
}

export interface InvalidConfiguration {
  readonly problems: readonly Problem[]
  readonly sources: Sources
  /** True if nothing but other contents of `sources` can make it valid. */
  readonly isFinal?: boolean
}

export interface LoadOptions {
  /** The plugins of a running process: no others are loaded then. */
  readonly running?: LoadedPlugins
  /** A folder of policies to read instead of the one that gateway.yaml names. */
  readonly policies?: string
  /** Contents from another load, used instead of reading the files. */
  readonly contents?: FileContents | undefined
}

/**
 * Loads the plugins that the configuration at `path` (gateway.yaml or its folder) names, then loads, validates and
 * compiles it, and asks each rule's plugin what it would count. Has no side effects except those of the plugins.
 */
export async function load(
  path: string,
  env: NodeJS.ProcessEnv,
  log: Log,
  { running, policies, contents }: LoadOptions = {},
): Promise<Configuration | InvalidConfiguration> {
  const disk = new ConfigFiles(contents, running !== undefined)
  const { plugins, problems: missing } = running
    ? { plugins: running, problems: [] }
    : await loadPlugins(path, env, disk)
  // Plugin files are watched too, although a running process can only report that they have changed.
  const files = [...plugins.files.keys()].map(file => [file, markOf(file)] as const)
  const loaded = loadConfig(path, { env, plugins: plugins.schemas, policies, files: disk })
  const sources = new Map([...loaded.sources, ...files])
  if ('problems' in loaded) {
    const problems = [...missing, ...loaded.problems, ...hint(path, env, running, disk)]
    return { problems, sources, isFinal: missing.length === 0 && !disk.mayPass }
  }
  const compiled = compile(loaded.config, plugins, log)
  if ('problems' in compiled) {
    const { problems, isFinal } = compiled
    return { problems: [...missing, ...problems], sources, isFinal: missing.length === 0 && isFinal }
  }
  const whole = { ...loaded, ...compiled, plugins, sources, contents: disk.contents }
  const problems = [...missing, ...tryLimiters(whole, log)]
  if (problems.length === 0) return whole
  await whole.compiled.close()
  return { problems, sources }
}

/** A changed list of plugins may be the cause: the running process does not know the new ones. */
function hint(
  path: string,
  env: NodeJS.ProcessEnv,
  running: LoadedPlugins | undefined,
  disk: ConfigFiles,
): Problem[] {
  const list = running && readPluginList(path, env, disk)
  if (!list?.isRead || isDeepStrictEqual(list.names, running?.names)) return []
  return [list.problem('The list of plugins has changed. That needs a restart.')]
}

/** Like `load`, for a command that cannot continue without: throws a Failure that lists the problems. */
export async function loadOrFail(
  path: string,
  env: NodeJS.ProcessEnv,
  log: Log,
  options?: LoadOptions,
): Promise<Configuration> {
  const loaded = await load(path, env, log, options)
  if ('problems' in loaded) throw new Failure(listProblems(loaded.problems))
  return loaded
}
