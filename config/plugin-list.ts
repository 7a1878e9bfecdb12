/**
 * Reads the list of plugins in gateway.yaml: it comes first because the plugins' schemas define what the files may
 * hold.
 */
import type { TSchema } from 'typebox'
import { expandIn } from './environment.js'
import { ConfigFiles, gatewayFileOf } from './files.js'
import type { Path, Problem } from './problem.js'
import { pluginEntry } from './schema/plugin.js'
import { ruleFileSchema } from './schema/policy.js'
import { problemAt } from './types.js'
import { createValidator } from './validate.js'
import { COMMON_RULE_KEYS } from './words/words.js'
import { parseYaml } from './yaml.js'

export type PluginList = ReturnType<typeof readPluginList>

/** Reads the list at `path`: gateway.yaml or its folder. Reads that file only; never throws on what it holds. */
export function readPluginList(path: string, env: NodeJS.ProcessEnv, files = new ConfigFiles()) {
  const gatewayFile = gatewayFileOf(path)
  const read = files.text(gatewayFile)
  const parsed =
    'text' in read
      ? parseYaml(
          read.text,
          expandIn(env, file => files.secret(file)),
        )
      : undefined
  const written = (parsed?.data as { plugins?: unknown } | null | undefined)?.plugins
  const isRead = parsed?.faults.length === 0
  const isList = isRead && Array.isArray(written)
  const names: readonly string[] = isList && written.every(name => typeof name === 'string') ? written : []
  const locate = (file: string, at: Path) => ({ file, ...(parsed?.locate(at) ?? { line: 1, col: 1 }) })
  return {
    gatewayFile,
    /** False if gateway.yaml could not be read, which loading it will report. */
    isRead,
    /** As written; empty if the list in gateway.yaml is invalid, which loading it will report. */
    names,
    /** A problem with the plugin at `index`, or with the whole list. */
    problem(message: string, index?: number): Problem {
      const at = index === undefined ? ['plugins'] : ['plugins', index]
      return problemAt({ locate }, gatewayFile, at, message)
    },
  }
}

/** Why a plugin's schema cannot join the configuration's, as the end of a sentence; undefined when it can. */
export function pluginSchemaFault(isLimit: boolean, name: string, schema: TSchema): string | undefined {
  const { type, properties = {} } = schema as { type?: unknown; properties?: object }
  if (type !== 'object') return 'it must describe a map: Type.Object({ … })'
  const reserved: readonly string[] = isLimit ? COMMON_RULE_KEYS : ['plugin']
  const taken = Object.keys(properties).find(key => reserved.includes(key))
  if (taken !== undefined) return `the key "${taken}" is reserved`
  try {
    createValidator(isLimit ? ruleFileSchema(name, schema) : pluginEntry({ [name]: schema }))
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
