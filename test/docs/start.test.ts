/** The first pages of a new user, done as they are written. */
import t from 'tap'
import { inProject, root } from '../helpers/root.js'
import { packed } from '../package/packed.js'
import { walk } from './walk.js'

const HELLO = `node -e "require('http').createServer((req, res) => res.end('hello')).listen(3000)"`
const KEY = 'sk_the-key-that-the-first-start-shows'

t.test('README.md: a service of yours behind a limit in a minute, from the package', async t => {
  const { installed } = packed(t)
  await walk(t, 'README.md', {
    installed,
    before: {
      'serve --upstream': ({ port, serve }) => serve(HELLO.replace('3000', String(port(3000))), [port(3000)]),
      'npm start': ({ run }) => run(`cd ${root}; export DATA_DIR=$HOME/data`),
    },
  })
})

t.test('docs/start.md: a limit, a configuration and five calls, from a checkout', async t => {
  await walk(t, 'docs/start.md', {
    env: { API_KEYS: KEY },
    blanks: { 'sk_...': KEY },
    before: {
      'API_KEY=': ({ port, serve }) => serve(`sluice serve --config ${inProject('config')}`, [port(8080)]),
    },
  })
})
