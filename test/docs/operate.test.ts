/** The pages about a gateway that runs. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inProject } from '../helpers/root.js'
import { type Walk, walk } from './walk.js'

/** The shipped configuration as `config`, and a gateway on it. */
async function serveShipped({ folder, port, serve }: Walk): Promise<void> {
  cpSync(inProject('config'), join(folder, 'config'), { recursive: true })
  await serve('sluice serve --config config', [port(8080)])
}

t.test('docs/operators.md: deny at once, report-only for now', async t => {
  await walk(t, 'docs/operators.md', { before: { 'access/scraper': serveShipped } })
})

t.test('docs/network.md: the address that does not answer is left out', async t => {
  await walk(t, 'docs/network.md', {
    before: {
      async 'seq 12'({ folder, port, run, serve, shown }) {
        const answering = port(4444)
        const app = `require('http').createServer((_, res) => res.end()).listen(${answering})`
        await serve(`node -e "${app}"`, [answering])
        await run('sluice init config --limit 1000/m')
        const gateway = join(folder, 'config', 'gateway.yaml')
        const text = readFileSync(gateway, 'utf8').replace(/^upstreams:\n.*\n/m, shown('upstreams:\n  hydra'))
        writeFileSync(gateway, text.replace('upstream: app', 'upstream: hydra'))
        await serve('sluice serve --config config', [port(8080)])
      },
    },
  })
})
