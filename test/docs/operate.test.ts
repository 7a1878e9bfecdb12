/** The pages about a gateway that runs. */
import { appendFileSync, cpSync } from 'node:fs'
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
      async 'grep ejected'({ folder, port, run, serve }) {
        await serve(
          `node -e "require('http').createServer((req, res) => res.end('hello')).listen(${port(18590)})"`,
          [port(18590)],
        )
        await run('sluice init config')
        appendFileSync(join(folder, 'config', 'gateway.yaml'), '')
        await serve('sluice serve --config config', [port(8080)])
      },
    },
  })
})

t.test('docs/forms.md: whoever registers is recognised by the cookie', async t => {
  await walk(t, 'docs/forms.md', { before: { 'curl -c jar': serveShipped } })
})
