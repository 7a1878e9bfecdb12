/** The pages about operating a running gateway. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { copyShipped, serveHello, serveShipped } from './servers.js'
import { walk } from './walk.js'

t.test(
  'docs/operators.md: the commands that deny a client, change a mode and negotiate a limit print what the page shows',
  async t => {
    await walk(t, 'docs/operators.md', { before: { 'access/scraper': serveShipped } })
  },
)

t.test('docs/network.md: an upstream address that does not respond is left out', async t => {
  await walk(t, 'docs/network.md', {
    before: {
      async 'seq 12'(walk) {
        const { folder, run, serveGateway, shown } = walk
        await serveHello(walk, 4444)
        await run('sluice init config --limit 1000/m')
        const gateway = join(folder, 'config', 'gateway.yaml')
        const text = readFileSync(gateway, 'utf8').replace(/^upstreams:\n.*\n/m, shown('upstreams:\n  hydra'))
        writeFileSync(gateway, text.replace('upstream: app', 'upstream: hydra'))
        await serveGateway('sluice serve --config config')
      },
    },
  })
})

t.test('docs/scaling.md: several workers without Redis are refused', async t => {
  await walk(t, 'docs/scaling.md', {
    before: {
      'serve --config config'(walk) {
        copyShipped(walk)
        const gateway = join(walk.folder, 'config', 'gateway.yaml')
        // Nothing listens on it, and the reported column depends on the length of the port as the page writes it.
        const [listen, redis] = walk
          .shown('listen: { host')
          .replace(`${walk.port(8080)}`, '8080')
          .split('\n') as [string, string]
        const text = readFileSync(gateway, 'utf8')
        writeFileSync(
          gateway,
          text.replace(/^listen: .*$/m, listen).replace(/^redis: .*$/m, () => redis),
        )
      },
    },
  })
})
