/**
 * Turns the sources into dist/: tsc, then copies of the files tsc ignores, then removal of outputs without a source.
 */
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { inProject, root, runBin } from './run.mjs'

const CODE = ['gateway', 'services', 'config', 'tools', 'webhooks', 'test', 'scripts']
/** Folders whose other files (Lua scripts, the admin page) travel with the code. */
const WITH_ASSETS = ['gateway', 'services']
/** What runs in Node, and the admin port's page, which runs in a browser. */
const PROGRAMS = [
  { config: 'tsconfig.json', memory: '.tsbuildinfo' },
  { config: 'tsconfig.page.json', memory: '.tsbuildinfo-page' },
]
const STAMP = inProject('dist', '.build-stamp')

/** True when dist/ holds the output of exactly the present sources. */
export function isBuilt() {
  const sources = listSources()
  return (
    existsSync(STAMP) &&
    readFileSync(STAMP, 'utf8') === stampOf(sources) &&
    sources.every(source => existsSync(outputOf(source)))
  )
}

/** Builds dist/. Throws a Failure when the compiler finds an error. */
export function build() {
  const sources = listSources()
  const stamp = stampOf(sources)
  rmSync(STAMP, { force: true })
  // tsc's incremental state does not notice outputs that were deleted.
  const complete = sources.every(source => isAsset(source) || existsSync(outputOf(source)))
  for (const { memory, config } of PROGRAMS) {
    if (!complete) rmSync(inProject('dist', memory), { force: true })
    runBin(
      'typescript-7/bin/tsc',
      ['--project', inProject(config)],
      'The TypeScript compiler found errors; see above',
    )
  }
  for (const asset of sources.filter(isAsset)) {
    mkdirSync(dirname(outputOf(asset)), { recursive: true })
    cpSync(asset, outputOf(asset))
  }
  sweep(sources)
  writeFileSync(STAMP, stamp)
}

const isAsset = (/** @type {string} */ file) => !file.endsWith('.ts') && !isScript(file)
/** Those that run before a build, too: compiled so that the other scripts can import them. */
const isScript = (/** @type {string} */ file) =>
  file.endsWith('.mjs') && file.startsWith(inProject('scripts'))
const isSource = (/** @type {string} */ file) =>
  file.endsWith('.ts') || isScript(file) || WITH_ASSETS.some(folder => file.startsWith(inProject(folder)))

function listSources() {
  return CODE.flatMap(folder => listFiles(inProject(folder))).filter(isSource)
}

const outputOf = (/** @type {string} */ source) =>
  inProject('dist', relative(root, source).replace(/\.ts$/, '.js'))

/** Name, size and time of every source and of the compiler's inputs: enough to notice any edit, and fast. */
function stampOf(/** @type {string[]} */ sources) {
  const hash = createHash('sha256')
  const steering = [...PROGRAMS.map(({ config }) => inProject(config)), inProject('package-lock.json')]
  for (const file of [...sources, ...steering]) {
    const { size, mtimeMs } = statSync(file)
    hash.update(`${relative(root, file)} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex')
}

/** Removes outputs of deleted sources: a stale test would still run, a stale module still load. */
function sweep(/** @type {string[]} */ sources) {
  const expected = new Set(sources.map(outputOf))
  for (const folder of CODE) {
    for (const file of listFiles(inProject('dist', folder))) {
      const output = file.replace(/\.(?:d\.(m?)ts|(m?)js\.map)$/, '.$1$2js')
      if (!expected.has(output)) rmSync(file)
    }
  }
}

function listFiles(/** @type {string} */ folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
}
