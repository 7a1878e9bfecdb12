/** Finds the file of a plugin named in gateway.yaml, as Node would for a module in the same folder as gateway.yaml. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** True for `./plugins/cost.js`, false for the name of a package. */
export function isPath(named: string): boolean {
  return /^\.{1,2}\//.test(named) || isAbsolute(named)
}

/**
 * The file that `named` refers to: a path relative to gateway.yaml, or a package installed beside it or beside this
 * program.
 * @returns undefined when there is none
 */
export function findPlugin(named: string, gatewayFile: string): string | undefined {
  const from = resolve(gatewayFile)
  if (isPath(named)) return entryOf(resolve(dirname(from), named))
  return installed(named, from) ?? installed(named, fileURLToPath(import.meta.url))
}

function installed(name: string, from: string): string | undefined {
  const require = createRequire(from)
  const folders = require.resolve.paths(name) ?? []
  const folder = folders.map(one => join(one, name)).find(one => existsSync(join(one, 'package.json')))
  if (folder !== undefined) return entryOf(folder)
  try {
    return require.resolve(name) // A file inside a package.
  } catch {
    return undefined
  }
}

/** The file itself; for a folder, what its package.json names, or index.js. */
function entryOf(path: string): string | undefined {
  const info = statSync(path, { throwIfNoEntry: false })
  if (!info?.isDirectory()) return info && path
  const { exports, main } = manifestOf(path)
  const entry = [exportOf(exports), main, 'index.js'].find(one => typeof one === 'string') as string
  const file = join(path, entry)
  return existsSync(file) ? file : undefined
}

function manifestOf(folder: string): { exports?: unknown; main?: unknown } {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) ?? {}
  } catch {
    return {}
  }
}

/** Node's conditions for `import`, which `require.resolve` does not use: many packages export nothing else. */
const CONDITIONS = ['node', 'import', 'module-sync', 'default']

/** What `import` of the package resolves to by its `exports` (nodejs.org/api/packages.html, 'Conditional exports'). */
function exportOf(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (typeof exports !== 'object' || exports === null) return undefined
  const root = Object.entries(exports).find(([key]) => key === '.')
  if (root !== undefined) return exportOf(root[1])
  for (const [condition, target] of Object.entries(exports)) {
    const found = CONDITIONS.includes(condition) ? exportOf(target) : undefined
    if (found !== undefined) return found
  }
  return undefined
}
