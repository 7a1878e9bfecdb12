/** The archive that `npm publish` would send, checked by third-party tools and by fresh installations. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NODES, withNode } from './nodes.mjs'
import { root, run, runBin, say } from './run.mjs'

/**
 * Packs what is built, hands the archive's path to `work`, and removes it afterwards.
 *
 * @param {(archive: string) => void} work
 * @param {object} [more] fields to add to its package.json
 */
export function withArchive(work, more) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-archive-'))
  const pack = (cwd = root) => {
    const options = ['--ignore-scripts', '--silent', '--pack-destination', folder]
    run('npm', ['pack', ...options], 'npm could not pack', { cwd })
    return join(folder, readdirSync(folder).find(name => name.endsWith('.tgz')) ?? '')
  }
  try {
    const archive = pack()
    if (more !== undefined) {
      run('tar', ['-xzf', archive, '-C', folder], 'tar could not unpack')
      const manifest = join(folder, 'package', 'package.json')
      const fields = { ...JSON.parse(readFileSync(manifest, 'utf8')), ...more }
      writeFileSync(manifest, `${JSON.stringify(fields, null, 2)}\n`)
      pack(join(folder, 'package'))
    }
    work(archive)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Throws a Failure when publint, attw or an installation on one of the Nodes complains. */
export function checkArchive(/** @type {string} */ archive) {
  say('publint and attw ...')
  runBin('publint/src/cli.js', ['run', '--strict', archive], 'publint found faults; see above')
  runBin(
    '@arethetypeswrong/cli/dist/index.js',
    ['--profile', 'esm-only', '--quiet', archive],
    'attw found faults; see above',
  )
  for (const version of NODES) installOn(version, archive)
}

function installOn(/** @type {string} */ version, /** @type {string} */ archive) {
  say(`installing on Node ${version} ...`)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-installed-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
    const at = { cwd: folder, env: withNode(version).env }
    const sluice = ['--no-install', 'sluicegate']
    run(
      'npm',
      ['install', '--engine-strict', '--prefer-offline', archive],
      `Node ${version}: not installed`,
      at,
    )
    run('npx', [...sluice, '--version'], `Node ${version}: the command fails`, at)
    run('npx', [...sluice, 'check', '--config', STARTER], `Node ${version}: check fails`, at)
    if (version === NODES[0]) compileDeclarations(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const STARTER = join('node_modules', 'sluicegate', 'config')

/** Compiles every declaration file that the entries lead to, those of our dependencies included. */
function compileDeclarations(/** @type {string} */ folder) {
  say('compiling its declarations ...')
  const entries = ['', '/testing', '/directory', '/identity']
  const text = entries.map((entry, i) => `export * as e${i} from 'sluicegate${entry}'\n`).join('')
  writeFileSync(join(folder, 'all.ts'), text)
  const options = ['--strict', '--noEmit', '--target', 'es2023', '--module', 'nodenext']
  runBin('typescript/bin/tsc', [...options, join(folder, 'all.ts')], 'The declarations have errors')
}
