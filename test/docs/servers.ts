/** What runs before a page begins: the shipped gateway, or a service of the reader's. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inProject, root } from '../helpers/root.js'
import type { PageOutput } from './terminal.js'
import type { PageWalk } from './walk.js'

/** The shipped configuration as `config`. */
export function copyShipped({ folder }: PageWalk): void {
  cpSync(inProject('config'), join(folder, 'config'), { recursive: true })
}

/** The shipped configuration as `config`, and a gateway on it. */
export async function serveShipped(walk: PageWalk): Promise<void> {
  copyShipped(walk)
  await walk.serve('sluice serve --config config', [walk.port(8080)])
}

/** The reader's own service, on the port that the page writes. */
export function serveHello({ port, serve }: PageWalk, written = 3000): Promise<void> {
  const app = `require('http').createServer((_, res) => res.end('hello')).listen(${port(written)})`
  return serve(`node -e "${app}"`, [port(written)])
}

/** The next commands are given in the checkout, with the data elsewhere. */
export async function startFromRoot({ run }: PageWalk): Promise<PageOutput> {
  const { isBuilt } = await import(pathToFileURL(inProject('scripts', 'lib', 'build.mjs')).href)
  // `npm start` would build anew, below the tests that run.
  if (!isBuilt()) throw new Error('dist/ is older than its sources: build first, as `npm test` does')
  return run(`cd ${root}; export DATA_DIR=$HOME/data`)
}
