/** The first pages of a new user with a checkout. */
import t from 'tap'
import { inProject } from '../helpers/root.js'
import { serveHello, startFromRoot } from './servers.js'
import { walk } from './walk.js'

const KEY = 'sk_the-key-that-the-first-start-shows'

t.test('README.md: the steps with a checkout work as shown', async t => {
  await walk(t, 'README.md', { before: { 'serve --upstream': serveHello, 'npm start': startFromRoot } })
})

t.test('docs/start.md: the limit, the configuration and the five calls work as shown', async t => {
  await walk(t, 'docs/start.md', {
    env: { API_KEYS: KEY },
    blanks: { 'sk_...': KEY },
    before: {
      'API_KEY=': ({ serveGateway }) => serveGateway(`sluice serve --config ${inProject('config')}`),
    },
  })
})
