/** `sluice init`: writes a starter configuration. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { listed } from '../../config/problem.js'
import { CONFIG, defineCommand, Unusable } from '../command.js'
import { writeNew } from '../files.js'
import { readStarter, STARTER, starterFiles } from './files.js'
import { limitsText } from './options.js'

/** Files and folders that must not exist yet: other policies would count beside these. */
const TAKEN = ['gateway.yaml', 'projects.yaml', 'policies']

export const init = defineCommand({
  name: 'init',
  summary: 'Write a starter configuration',
  operands: { usage: '[DIR]', least: 0, most: 1 },
  options: STARTER,
  details: `Writes gateway.yaml, projects.yaml and policies/limits.yaml with comments into DIR (${CONFIG.default}), the configuration that "sluice serve --upstream" runs. Never overwrites anything.`,
  example: 'sluice init --upstream http://127.0.0.1:3000 --limit 100/m',
  async run({ values, positionals: [folder = CONFIG.default] }, io) {
    if (folder === '') throw new Unusable('DIR is empty.')
    const starter = readStarter(values)
    const files = Object.entries(starterFiles(starter)).map(([name, text]) => ({
      path: join(folder, name),
      text,
    }))
    const present = TAKEN.map(name => join(folder, name)).filter(path => existsSync(path))
    if (present.length > 0) {
      const are = present.length === 1 ? 'is' : 'are'
      throw new Unusable(
        `${listed(present, 'and')} ${are} already there. Nothing was written: name another folder, as in "sluice init gateway".`,
      )
    }
    for (const { path, text } of files) writeNew(path, text)
    const option = folder === CONFIG.default ? '' : ` --config ${quotedForShell(folder)}`
    io.out(`Wrote ${listed(
      files.map(({ path }) => path),
      'and',
    )}: ${limitsText(starter.limits)}, to ${starter.upstream}.

Next:
  sluice check${option}
  sluice serve${option}
  curl -i http://127.0.0.1:8080/      # RateLimit says what is left
`)
    return 0
  },
})

function quotedForShell(folder: string): string {
  // A shell passes it on, but a command would read it as an option.
  const path = folder.startsWith('-') ? `./${folder}` : folder
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
