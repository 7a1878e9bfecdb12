/** `npm run services`: installs the real servers that the tests need, where they are missing. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { installPython } from './lib/python.mjs'
import { Failure, inProject, onPath, run, say, script } from './lib/run.mjs'
import { installStores, STORES } from './lib/stores.mjs'

await script(() => {
  redis()
  nginx()
  cgi()
  chromium()
  prometheus()
  python()
  mongodb()
  systemd()
  libfaketime()
  deployChecks()
  pebble()
  stores()
})

function redis() {
  if (onPath('redis-server')) return say('redis-server: found')
  installPackage('redis-server')
}

/** Decides which spellings of a path are the same. */
function nginx() {
  if (onPath('nginx') || existsSync('/usr/sbin/nginx')) return say('nginx: found')
  installPackage('nginx-light')
}

/** Programs that get the fields of a request as variables. */
function cgi() {
  for (const [name, program] of Object.entries({ 'php-cli': 'php', lighttpd: 'lighttpd' })) {
    if (onPath(program) || existsSync(`/usr/sbin/${program}`)) say(`${program}: found`)
    else installPackage(name)
  }
}

/** Renders the forms in the browser tests. */
function chromium() {
  if (['chromium', 'chromium-browser', 'google-chrome'].some(onPath)) return say('Chromium: found')
  installPackage('chromium')
}

/** Scrapes a gateway and evaluates the alerts and the dashboard's queries. */
function prometheus() {
  if (onPath('prometheus') && onPath('promtool')) return say('Prometheus: found')
  installPackage('prometheus')
}

/** Runs the third-party suites (scripts/suites.mjs). */
function python() {
  const { status } = spawnSync('python3', ['-c', 'import ensurepip, venv'])
  if (status === 0) return say('python3 with venv: found')
  installPackage('python3-venv')
}

function installPackage(/** @type {string} */ name) {
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
  buildGo('ferretdb', '.', binary, ['-tags=ferretdb_no_postgresql'])
}

/** Checks the unit of deploy/systemd. */
function systemd() {
  if (onPath('systemd-analyze')) return say('systemd-analyze: found')
  installPackage('systemd')
}

/** Runs tests at another time (scripts/test-dates.mjs). */
function libfaketime() {
  const { status } = spawnSync('dpkg', ['-s', 'libfaketime'], { stdio: 'ignore' })
  if (status === 0) return say('libfaketime: found')
  installPackage('libfaketime')
}

/** Checks the Dockerfile and the files for Compose and Kubernetes (test/deploy). */
function deployChecks() {
  installPython('deploy', inProject('scripts', 'services', 'deploy', 'requirements.txt'))
  const programs = {
    'compose-go': 'github.com/compose-spec/compose-go/v2/cmd',
    kustomize: 'sigs.k8s.io/kustomize/kustomize/v5',
  }
  for (const [name, source] of Object.entries(programs)) {
    const binary = inProject('.cache', 'deploy', name)
    if (existsSync(binary)) continue
    if (!onPath('go')) throw new Failure(`${name} is missing: install Go so that it can be built`)
    say(`${name}: building it ...`)
    buildGo('deploy', source, binary)
  }
  say('checks of deploy/: found')
}

/** An authority that issues certificates to the tests of ACME. */
function pebble() {
  const binary = inProject('.cache', 'acme', 'pebble')
  if (onPath('pebble') || existsSync(binary)) return say('pebble: found')
  if (!onPath('go')) throw new Failure('pebble is missing: install Go so that it can be built')
  say('pebble: building it ...')
  mkdirSync(inProject('.cache', 'acme'), { recursive: true })
  buildGo('acme', 'github.com/letsencrypt/pebble/v2/cmd/pebble', binary)
}

/** Servers other than the distribution's Redis, for `npm run stores`. */
function stores() {
  installStores()
  say(`${STORES.map(({ name }) => name).join(', ')}: found`)
}

/**
 * Builds a program as the Go module in scripts/services pins it.
 *
 * @param {string} module
 * @param {string} source
 * @param {string} binary
 * @param {string[]} flags
 */
function buildGo(module, source, binary, flags = []) {
  const args = ['build', '-mod=readonly', '-trimpath', ...flags, '-ldflags=-s -w', '-o', binary, source]
  const env = { ...process.env, CGO_ENABLED: '0' }
  run('go', args, `${source} could not be built; see above`, {
    cwd: inProject('scripts', 'services', module),
    env,
  })
}
