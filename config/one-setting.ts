/** Reads one key of a configuration file, for commands that must work whatever else is wrong with the configuration. */
import { expandIn } from './environment.js'
import { readText } from './files.js'
import { formatPath, type Problem } from './problem.js'
import { parseYaml } from './yaml.js'

/** The value of a top-level key, not validated; undefined if it is not there. */
export type Setting = { readonly value: unknown } | { readonly problems: readonly Problem[] }

/** Problems are those of this key, and of a text that is no YAML. Never throws on what the file holds. */
export function readSetting(file: string, key: string, env: NodeJS.ProcessEnv): Setting {
  const read = readText(file)
  if ('fault' in read) return { problems: [{ file, line: 1, col: 1, path: '', message: read.fault }] }
  const { data, faults } = parseYaml(read.text, expandIn(env))
  const own = faults.filter(({ path }) => data === undefined || path[0] === key)
  if (own.length > 0)
    return { problems: own.map(fault => ({ file, ...fault, path: formatPath(fault.path) })) }
  return { value: (data as Readonly<Record<string, unknown>> | null | undefined)?.[key] }
}
