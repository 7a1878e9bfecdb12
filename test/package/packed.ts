/** What `npm publish` would send, unpacked beside the dependencies of this checkout, without using a registry. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { inProject, projectFile } from '../helpers/root.js'

export interface Packed {
  /** A folder with the package in its node_modules. */
  readonly folder: string
  /** The folder of the installed package. */
  readonly installed: string
  /** The archive itself. */
  readonly archive: string
  /** Paths in the package. */
  readonly files: readonly string[]
}

/** Packs what is built and installs it in a folder that is removed with the test. */
export function packed(t: Test): Packed {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-package-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: inProject(),
  })
  const archive = join(folder, readdirSync(folder).find(name => name.endsWith('.tgz')) ?? '')
  const modules = join(folder, 'node_modules')
  const installed = join(modules, 'sluicegate')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', archive, '-C', installed, '--strip-components=1'])

  const { packages } = JSON.parse(projectFile('package-lock.json')) as {
    packages: Record<string, { dev?: boolean }>
  }
  // As in an installation, without development dependencies.
  for (const [path, { dev }] of Object.entries(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    if (name === undefined || dev) continue
    mkdirSync(join(modules, name, '..'), { recursive: true })
    symlinkSync(inProject(path), join(modules, name))
  }
  chmodSync(join(installed, 'dist', 'gateway', 'cli.js'), 0o755)
  mkdirSync(join(modules, '.bin'))
  symlinkSync(join('..', 'sluicegate', 'dist', 'gateway', 'cli.js'), join(modules, '.bin', 'sluice'))

  const files = readdirSync(installed, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(installed.length + 1))
  return { folder, installed, archive, files }
}
