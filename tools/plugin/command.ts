/** `sluice plugin`: creates the files of a new plugin. */
import { existsSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { listed } from '../../config/problem.js'
import { nameFault } from '../../gateway/configured/third-party/load.js'
import { didYouMean } from '../arguments.js'
import { defineCommand, Unusable } from '../command.js'
import { writeNew } from '../files.js'
import { printable } from '../text.js'
import { KINDS, type Kind, pluginFiles, usageOf } from './files.js'

export const plugin = defineCommand({
  name: 'plugin',
  summary: 'Create a plugin of your own',
  operands: { usage: 'new NAME', least: 2, most: 2 },
  options: {
    kind: {
      type: 'string',
      value: KINDS.join('|'),
      default: 'limit',
      help: 'what it does: limit requests, identify who asks, or observe what was answered',
    },
  },
  details: `Writes the folder NAME with the plugin, a test and a package.json, in plain JavaScript that an editor can check. Never overwrites anything. docs/plugins.md explains what a plugin can do; "sluice serve --watch" restarts when you change it.`,
  example: 'sluice plugin new upload-budget --kind limit\nsluice plugin new customer-header --kind identify',
  async run({ values, positionals: [action, name = ''] }, io) {
    if (action !== 'new') throw new Unusable(`"plugin" knows "new", not "${printable(action ?? '')}".`)
    const kind = kindOf(values.kind)
    const fault = nameFault(kind, name) ?? packageNameFault(name)
    if (fault !== undefined) throw new Unusable(`"${printable(name)}" cannot be a plugin's name: ${fault}.`)
    if (existsSync(name)) throw new Unusable(`${name} is already there. Nothing was written.`)
    for (const [file, text] of Object.entries(pluginFiles(kind, name))) writeNew(join(name, file), text)
    io.out(`Wrote ${name}, a plugin with its test.

Next:
${isInstalledBeside(name) ? '' : '  npm install sluicegate      # it is not installed here yet\n'}  (cd ${name} && npm test)
${usageOf(kind, name)}`)
    return 0
  },
})

function kindOf(word: string): Kind {
  const kind = KINDS.find(one => one === word)
  if (kind !== undefined) return kind
  throw new Unusable(
    `--kind must be ${listed(KINDS)}, but it is "${printable(word)}".${didYouMean(word, KINDS)}`,
  )
}

/** Rejects names that npm refuses, or that `import` resolves to something else. */
function packageNameFault(name: string): string | undefined {
  if (isBuiltin(name)) return `Node.js has a module called "${name}"`
  if (name === 'sluicegate') return 'it is the name of the package that plugins import'
  return ['node_modules', 'favicon.ico'].includes(name) ? 'npm reserves it' : undefined
}

/** Whether the plugin's own import would be found. */
function isInstalledBeside(folder: string): boolean {
  const folders = createRequire(resolve(folder, 'index.js')).resolve.paths('sluicegate') ?? []
  return folders.some(one => existsSync(join(one, 'sluicegate', 'package.json')))
}
