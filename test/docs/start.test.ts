/** The first pages of a new user with a checkout. */
import t from 'tap'
import { inProject } from '../helpers/root.js'
import { serveHello, startFromRoot } from './servers.js'
import { walk } from './walk.js'

const KEY = 'sk_the-key-that-the-first-start-shows'

t.test('README.md: a service of yours behind a limit in a minute, from a checkout', async t => {
  await walk(t, 'README.md', { before: { 'serve --upstream': serveHello, 'npm start': startFromRoot } })
})

t.test('docs/start.md: a limit, a configuration and five calls', async t => {
  await walk(t, 'docs/start.md', {
    env: { API_KEYS: KEY },
    blanks: { 'sk_...': KEY },
    before: {
      'API_KEY=': ({ port, serve }) => serve(`sluice serve --config ${inProject('config')}`, [port(8080)]),
    },
  })
})
