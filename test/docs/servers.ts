/** What runs before a page's first command: the shipped gateway, or the reader's own service. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inProject, root } from '../helpers/root.js'
import type { PageOutput } from './terminal.js'
import type { PageWalk } from './walk.js'

/** Copies the shipped configuration to `config`. */
export function copyShipped({ folder }: PageWalk): void {
  cpSync(inProject('config'), join(folder, 'config'), { recursive: true })
}

/** Copies the shipped configuration to `config` and starts a gateway on it. */
export async function serveShipped(walk: PageWalk): Promise<void> {
  copyShipped(walk)
  await walk.serveGateway('sluice serve --config config')
}

/** Starts the reader's own service, on the port that the page writes. */
export function serveHello({ port, serve }: PageWalk, written = 3000): Promise<void> {
  const app = `require('http').createServer((_, res) => res.end('hello')).listen(${port(written)})`
  return serve(`node -e "${app}"`, [port(written)])
}

/** Runs the next commands in the checkout, with the data elsewhere. */
export async function startFromRoot({ run }: PageWalk): Promise<PageOutput> {
  const { isBuilt } = await import(pathToFileURL(inProject('scripts', 'lib', 'build.mjs')).href)
  // `npm start` would rebuild dist/ under the running tests.
  if (!isBuilt()) throw new Error('dist/ is older than its sources: build first, as `npm test` does')
  return run(`cd ${root}; export DATA_DIR=$HOME/data`)
}
