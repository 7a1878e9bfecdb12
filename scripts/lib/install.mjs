import { existsSync, statSync } from 'node:fs'
import { inProject, run } from './run.mjs'

/** npm writes this file last, so it tells a finished installation and its age. */
const RECORD = inProject('node_modules', '.package-lock.json')

/** True when node_modules holds what package-lock.json asks for, development tools included. */
export function isInstalled() {
  return (
    existsSync(RECORD) &&
    existsSync(inProject('node_modules', 'typescript')) &&
    statSync(RECORD).mtimeMs >= statSync(inProject('package-lock.json')).mtimeMs
  )
}

/** Installs exactly what package-lock.json says. Throws a Failure when npm does. */
export function install() {
  run(
    'npm',
    ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'],
    'npm could not install the dependencies; see above',
  )
}
