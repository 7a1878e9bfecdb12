/** Peers that are npm packages: installed once, outside the project's own dependencies. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, say } from '../lib/run.mjs'

/** Installs packages, versions by name, into a folder, unless it already holds exactly these. */
export function installBeside(folder: string, packages: Readonly<Record<string, string>>): void {
  const manifest = join(folder, 'package.json')
  const text = JSON.stringify({ private: true, dependencies: packages })
  // npm writes this file last, so its presence means that the installation is complete.
  const finished = existsSync(join(folder, 'node_modules', '.package-lock.json'))
  if (finished && readFileSync(manifest, 'utf8') === text) return
  say(`installing ${Object.keys(packages).join(', ')} for the benchmark ...`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(manifest, text)
  run('npm', ['install', '--no-audit', '--no-fund'], 'the peers could not be installed', { cwd: folder })
}
