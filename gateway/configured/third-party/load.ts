/** Loads the plugins that gateway.yaml names. Faults become problems of the configuration, at their place. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { ConfigFiles } from '../../../config/files.js'
import { type PluginList, pluginSchemaFault, readPluginList } from '../../../config/plugin-list.js'
import { formatProblem, type Problem } from '../../../config/problem.js'
import type { Plugin } from '../../plugin.js'
import { builtIn, type PluginSet, pluginSet } from '../../plugins.js'
import { checked } from './checked.js'
import { findPlugin, isPath } from './find.js'
import { messageOf, shapeFault } from './shape.js'

/** The plugins of a configuration. They last as long as the process, because loaded code cannot be reloaded. */
export interface LoadedPlugins extends PluginSet {
  /** The third-party plugins, as gateway.yaml names them. */
  readonly names: readonly string[]
  /** Their files, each with a digest of its content when it was loaded. Files that they import are not included. */
  readonly files: ReadonlyMap<string, string>
}

/** How long a module may take to load: a top-level `await` may never end. */
const PATIENCE_MS = 10_000

/**
 * Loads the plugins of the configuration at `path`, which runs their modules' code. Never rejects: with `problems`,
 * `plugins` are those that could be loaded.
 */
export async function loadPlugins(
  path: string,
  env: NodeJS.ProcessEnv,
  disk?: ConfigFiles,
): Promise<{ readonly plugins: LoadedPlugins; readonly problems: readonly Problem[] }> {
  const list = readPluginList(path, env, disk)
  const joined = new Joining(list)
  // One at a time, so that output of modules while loading appears in the written order.
  for (const [i, name] of list.names.entries()) await joined.add(name, i)
  const plugins = { names: list.names, files: joined.files, ...pluginSet([...BUILT_IN, ...joined.plugins]) }
  return { plugins, problems: joined.problems }
}

/** True when a plugin's file has changed since it was loaded. */
export function isOutdated({ files }: LoadedPlugins): boolean {
  return [...files].some(([file, digest]) => digestOf(file) !== digest)
}

function digestOf(file: string): string | undefined {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('base64')
  } catch {
    return undefined
  }
}

const BUILT_IN: readonly Plugin[] = [...builtIn.identify, ...builtIn.limit, ...builtIn.observe]

/** Names a policy kind cannot have: the schema file of that name belongs to another file. */
const RESERVED = ['gateway', 'projects', 'identity', 'access']

/** Why a third-party plugin cannot have this name, as the end of a sentence; undefined when it can. */
export function nameFault(kind: Plugin['kind'], name: string): string | undefined {
  const fault = shapeFault({ name, kind, schema: {}, create() {} })
  if (fault !== undefined) return fault
  if (kind === 'limit' && RESERVED.includes(name)) return `a policy kind cannot be called "${name}"`
  return BUILT_IN.some(one => one.kind === kind && one.name === name)
    ? `it is the name of a built-in ${kind} plugin`
    : undefined
}

class Joining {
  readonly problems: Problem[] = []
  readonly plugins: Plugin[] = []
  readonly files = new Map<string, string>()
  readonly #list: PluginList
  /** The owner of each name, by kind and name. */
  readonly #owners = new Map(BUILT_IN.map(({ kind, name }) => [`${kind} ${name}`, 'a built-in one']))

  constructor(list: PluginList) {
    this.#list = list
  }

  /** Imports a module and adds the plugins it exports. */
  async add(named: string, index: number): Promise<void> {
    const report = (message: string) => this.problems.push(this.#list.problem(message, index))
    const file = findPlugin(named, this.#list.gatewayFile)
    if (file === undefined) {
      report(notFound(named))
      return
    }
    this.files.set(file, digestOf(file) ?? '')
    const onExit = () => {
      report(`"${named}" ended the process while it was loaded.`)
      process.stderr.write(`${this.problems.map(formatProblem).join('\n')}\n`)
      process.exitCode = 1
    }
    process.on('exit', onExit)
    const exported = await importPlugin(file).catch(error => {
      report(`"${named}" could not be loaded: ${messageOf(error)}`)
      return undefined
    })
    process.off('exit', onExit)
    if (exported === undefined) return
    const candidates = pluginsOf(exported)
    if (candidates.length === 0) {
      report(`"${named}" exports no plugin. Export one as default, or as "plugin" or "plugins".`)
    }
    for (const candidate of candidates) {
      const fault = shapeFault(candidate) ?? this.#nameFault(candidate as Plugin, named)
      if (fault === undefined) this.plugins.push(checked(candidate as Plugin))
      else report(`"${named}" exports no usable plugin: ${fault}.`)
    }
  }

  #nameFault({ kind, name, schema }: Plugin, named: string): string | undefined {
    if (kind === 'limit' && RESERVED.includes(name)) return `a policy kind cannot be called "${name}"`
    const owner = this.#owners.get(`${kind} ${name}`)
    if (owner !== undefined) return `the name "${name}" of its ${kind} plugin is taken by ${owner}`
    this.#owners.set(`${kind} ${name}`, `"${named}"`)
    const fault = pluginSchemaFault(kind === 'limit', name, schema)
    return fault && `the schema of its ${kind} plugin "${name}" does not fit: ${fault}`
  }
}

function notFound(named: string): string {
  if (isPath(named)) return `There is no plugin at "${named}", as seen from this file.`
  return `No package "${named}" is installed beside this file. Install it there with npm, or give a path that begins with "./".`
}

async function importPlugin(file: string): Promise<Record<string, unknown>> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const error = new Error(`it has not finished loading after ${PATIENCE_MS / 1000} s.`)
    timer = setTimeout(() => reject(error), PATIENCE_MS)
  })
  return Promise.race([import(pathToFileURL(file).href), late]).finally(() => clearTimeout(timer))
}

/** The default export, `plugin` and `plugins`: each a plugin or a list of plugins, without duplicates. */
function pluginsOf(exported: Record<string, unknown>): unknown[] {
  const all = [exported.default, exported.plugin, exported.plugins].flat()
  return [...new Set(all.filter(one => one !== undefined))]
}
