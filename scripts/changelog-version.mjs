/** Runs within `npm version`: moves the unreleased entries of CHANGELOG.md under the new version and today's date. */
import { readFileSync, writeFileSync } from 'node:fs'
import { withVersion } from './lib/changelog.mjs'
import { inProject, script } from './lib/run.mjs'

await script(() => {
  const file = inProject('CHANGELOG.md')
  const { version } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
  const today = new Date().toISOString().slice(0, 10)
  writeFileSync(file, withVersion(readFileSync(file, 'utf8'), version, today))
})
