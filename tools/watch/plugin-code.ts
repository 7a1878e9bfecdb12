/** Detects changes in the code of the plugins that a configuration names. */
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gatewayFileOf } from '../../config/files.js'
import { readPluginList } from '../../config/plugin-list.js'
import { findPlugin } from '../../gateway/configured/third-party/find.js'

const CODE = /\.([cm]?[jt]s|json)$/
/** A bound, since a plugin may be in a folder with many other files. */
const MOST_FILES = 2000

/** A text that changes with the list of plugins, and with the files in their folders. */
export function markOfPlugins(config: string, env: NodeJS.ProcessEnv): string {
  const { names } = readPluginList(config, env)
  const folders = names.flatMap(name => {
    const file = findPlugin(name, gatewayFileOf(config))
    return file === undefined ? [] : dirname(file)
  })
  return JSON.stringify([names, [...new Set(folders)].flatMap(marksIn)])
}

function marksIn(folder: string): string[] {
  const files: string[] = []
  const folders = [folder]
  for (let next = folders.pop(); next !== undefined && files.length < MOST_FILES; next = folders.pop()) {
    for (const entry of entriesOf(next)) {
      const path = join(next, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (CODE.test(entry.name)) files.push(path)
    }
  }
  return files.sort().map(markOfFile)
}

/** The entries of a folder without installed and hidden ones; none if the folder has gone. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter(
      ({ name }) => name !== 'node_modules' && name[0] !== '.',
    )
  } catch {
    return []
  }
}

function markOfFile(file: string): string {
  const info = statSync(file, { throwIfNoEntry: false })
  return `${file} ${info?.size} ${info?.mtimeMs}`
}
