import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { Failure, inProject, root } from './run.mjs'

/** npm writes this file last, so it marks a complete installation and its age. */
const RECORD = inProject('node_modules', '.package-lock.json')

/** True when node_modules holds what package-lock.json asks for, development tools included. */
export function isInstalled() {
  return (
    existsSync(RECORD) &&
    existsSync(inProject('node_modules', 'typescript')) &&
    statSync(RECORD).mtimeMs >= statSync(inProject('package-lock.json')).mtimeMs
  )
}

/** Prefer npm's cache, and give up within seconds without a network. */
const NETWORK = ['--prefer-offline', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000']

/** Installs exactly what package-lock.json says. Throws a Failure when npm does. */
export function install() {
  const { status, error, stderr } = spawnSync(
    'npm',
    ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error', ...NETWORK],
    { cwd: root, stdio: ['ignore', process.stderr, 'pipe'], encoding: 'utf8' },
  )
  if (status === 0) return
  throw new Failure(
    error === undefined ? installFault(stderr) : `npm could not be started (${error.message})`,
  )
}

const UNREACHABLE =
  /code (E?(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH|NOTCACHED))\b/

/** Why npm failed, as a sentence: what to do when its registry cannot be reached, else npm's own words. */
export function installFault(/** @type {string} */ output) {
  const [, code] = UNREACHABLE.exec(output) ?? []
  if (code === undefined) return `npm could not install the dependencies:\n${output.trimEnd()}`
  return `npm cannot reach its registry (${code}). The first start downloads the dependencies: connect to the network, or tell npm of your proxy or mirror ("npm config set proxy …", "npm config set registry …"), then start again`
}
