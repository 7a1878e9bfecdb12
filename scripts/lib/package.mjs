/** The archive that `npm publish` would send, checked by third-party tools and by fresh installations. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { inProject, run, runBin, say } from './run.mjs'

/** The oldest Node that package.json allows, and the later lines. */
const NODES = ['20.19', '22', '24']

/**
 * Packs what is built, hands the archive's path to `work`, and removes it afterwards.
 * @param more fields to add to its package.json
 */
export async function withArchive(work, more) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-archive-'))
  const pack = options => {
    npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], 'npm could not pack', options)
    return join(
      folder,
      readdirSync(folder).find(name => name.endsWith('.tgz')),
    )
  }
  try {
    const archive = pack()
    if (more !== undefined) {
      run('tar', ['-xzf', archive, '-C', folder], 'tar could not unpack')
      const manifest = join(folder, 'package', 'package.json')
      writeFileSync(
        manifest,
        `${JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), ...more }, null, 2)}\n`,
      )
      pack({ cwd: join(folder, 'package') })
    }
    await work(archive)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Throws a Failure when publint, attw or an installation on one of the Nodes complains. */
export function checkArchive(archive) {
  say('publint and attw ...')
  runBin('publint/src/cli.js', ['run', '--strict', archive], 'publint found faults; see above')
  runBin(
    '@arethetypeswrong/cli/dist/index.js',
    ['--profile', 'esm-only', '--quiet', archive],
    'attw found faults; see above',
  )
  for (const version of NODES) installOn(version, archive)
}

function installOn(version, archive) {
  say(`installing on Node ${version} ...`)
  const home = inProject('.cache', `node${version}`)
  mkdirSync(home, { recursive: true })
  npm(['install', '--prefix', home, '--prefer-offline', '--silent', `node@${version}`], `No Node ${version}`)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-installed-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
    const env = {
      ...process.env,
      PATH: `${join(home, 'node_modules', '.bin')}${delimiter}${process.env.PATH}`,
    }
    const at = { cwd: folder, env }
    npm(['install', '--engine-strict', '--prefer-offline', archive], `Node ${version}: not installed`, at)
    run('npx', ['--no-install', 'sluicegate', '--version'], `Node ${version}: the command fails`, at)
    run(
      'npx',
      ['--no-install', 'sluicegate', 'check', '--config', STARTER],
      `Node ${version}: check fails`,
      at,
    )
    typesOf(folder, version)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const STARTER = join('node_modules', 'sluicegate', 'config')

/** Compiles every declaration file that the entries lead to, those of our dependencies included. */
function typesOf(folder, version) {
  if (version !== NODES[0]) return
  say('compiling its declarations ...')
  const entries = ['', '/testing', '/directory', '/identity']
  const text = entries.map((entry, i) => `export * as e${i} from 'sluicegate${entry}'\n`).join('')
  writeFileSync(join(folder, 'all.ts'), text)
  const options = ['--strict', '--noEmit', '--target', 'es2023', '--module', 'nodenext']
  runBin('typescript/bin/tsc', [...options, join(folder, 'all.ts')], 'The declarations have errors')
}

const npm = (args, sentence, options) => run('npm', args, sentence, options)
