/**
 * `npm run docs`: writes the reference pages that come from the code (docs/reference). With --check it writes nothing,
 * names the pages that are stale and exits with code 1.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { commandsPage } from './docs/commands.js'
import { settingsPage } from './docs/settings.js'
import { inProject } from './lib/run.mjs'

const PAGES = { 'settings.md': settingsPage, 'commands.md': commandsPage }

const check = process.argv.includes('--check')
for (const [name, write] of Object.entries(PAGES)) {
  const file = inProject('docs', 'reference', name)
  const text = await write()
  if (!check) writeFileSync(file, text)
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`docs/reference/${name} is stale. Run "npm run docs".`)
    process.exitCode = 1
  }
}
