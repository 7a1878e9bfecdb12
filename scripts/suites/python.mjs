/** The suites that come from PyPI, in an environment of their own under .cache. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, inProject, onPath, run, say } from '../lib/run.mjs'

const folder = inProject('.cache', 'python', 'suites')
const requirements = inProject('scripts', 'suites', 'requirements.txt')

/** Installs what is missing; takes half a minute the first time. @returns the folder of the programs */
export function installSuites() {
  const wanted = readFileSync(requirements, 'utf8')
  const mark = join(folder, 'installed.txt')
  const programs = join(folder, 'bin')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return programs
  if (!onPath('python3')) throw new Failure('python3 is missing: install it with its module venv')
  say('suites: installing schemathesis and scim2-tester from PyPI ...')
  mkdirSync(folder, { recursive: true })
  run('python3', ['-m', 'venv', folder], 'no virtual environment; on Debian, install python3-venv')
  const pip = ['install', '--quiet', '--disable-pip-version-check', '--requirement', requirements]
  run(join(programs, 'pip'), pip, 'the suites could not be installed from PyPI')
  writeFileSync(mark, wanted)
  return programs
}
