/** `npm run services`: gets the real servers the tests want, where they are missing. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { Failure, inProject, onPath, run, say, script } from './lib/run.mjs'

await script(() => {
  redis()
  nginx()
  chromium()
  prometheus()
  python()
  mongodb()
})

function redis() {
  if (onPath('redis-server')) return say('redis-server: found')
  installPackage('redis-server')
}

/** Judges which spellings of a path are one. */
function nginx() {
  if (onPath('nginx') || existsSync('/usr/sbin/nginx')) return say('nginx: found')
  installPackage('nginx-light')
}

/** Draws the forms in the browser tests. */
function chromium() {
  if (['chromium', 'chromium-browser', 'google-chrome'].some(onPath)) return say('Chromium: found')
  installPackage('chromium')
}

/** Scrapes a gateway and evaluates the alerts and the dashboard's queries. */
function prometheus() {
  if (onPath('prometheus') && onPath('promtool')) return say('Prometheus: found')
  installPackage('prometheus')
}

/** Runs the suites of others (scripts/suites.mjs). */
function python() {
  const { status } = spawnSync('python3', ['-c', 'import ensurepip, venv'])
  if (status === 0) return say('python3 with venv: found')
  installPackage('python3-venv')
}

function installPackage(name) {
  if (process.getuid?.() !== 0 || !onPath('apt-get')) {
    throw new Failure(
      `${name} is missing: install it with your package manager, or run this as root on Debian`,
    )
  }
  say(`${name}: installing from the distribution ...`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  run('apt-get', ['update', '-qq'], 'apt-get update failed', { env })
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], 'apt-get install failed', {
    env,
  })
}

/** FerretDB speaks MongoDB's protocol over SQLite and can be built wherever Go is (see test/helpers/mongo.ts). */
function mongodb() {
  const binary = inProject('.cache', 'ferretdb', 'ferretdb')
  const ready = process.env.MONGODB_URL ?? ['mongod', 'ferretdb'].find(onPath)
  if (ready || existsSync(binary)) return say('MongoDB-protocol server: found')
  if (!onPath('go')) {
    throw new Failure(
      'A MongoDB-protocol server is missing: set MONGODB_URL, or install Go so that FerretDB can be built',
    )
  }
  say('MongoDB-protocol server: building FerretDB, which takes a minute or two ...')
  mkdirSync(inProject('.cache', 'ferretdb'), { recursive: true })
  run(
    'go',
    [
      'build',
      '-mod=readonly',
      '-trimpath',
      '-tags=ferretdb_no_postgresql',
      '-ldflags=-s -w',
      '-o',
      binary,
      '.',
    ],
    'FerretDB could not be built; see above',
    { cwd: inProject('scripts', 'services', 'ferretdb'), env: { ...process.env, CGO_ENABLED: '0' } },
  )
}
