/** Programs from PyPI, each in an environment of its own under .cache. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, inProject, onPath, run, say } from './run.mjs'

/**
 * Installs what the file `requirements` lists, unless it is installed; takes half a minute the first time.
 *
 * @returns the folder of the programs
 */
export function installPython(/** @type {string} */ name, /** @type {string} */ requirements) {
  const folder = inProject('.cache', 'python', name)
  const list = readFileSync(requirements, 'utf8')
  // The programs contain the folder's path and break when it moves.
  const wanted = `${folder}\n${list}`
  const mark = join(folder, 'installed.txt')
  const programs = join(folder, 'bin')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return programs
  if (!onPath('python3')) throw new Failure('python3 is missing: install it with its module venv')
  say(`${name}: installing ${list.match(/^\w[\w.-]*/gm)?.join(', ')} from PyPI ...`)
  mkdirSync(folder, { recursive: true })
  run('python3', ['-m', 'venv', '--clear', folder], 'no virtual environment; on Debian, install python3-venv')
  const pip = ['install', '--quiet', '--disable-pip-version-check', '--requirement', requirements]
  run(join(programs, 'pip'), pip, `what ${name} needs could not be installed from PyPI`)
  writeFileSync(mark, wanted)
  return programs
}
