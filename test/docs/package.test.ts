/** What a reader does with the npm package, in a folder without a checkout. */
import { join } from 'node:path'
import t from 'tap'
import { packed } from '../package/packed.js'
import { serveHello, startFromRoot } from './servers.js'
import { walk } from './walk.js'

const { folder, installed } = packed(t)

t.test('README.md: the steps with the package work as shown', async t => {
  await walk(t, 'README.md', {
    installed,
    before: { 'serve --upstream': serveHello, 'npm start': startFromRoot },
  })
})

t.test('docs/plugins.md: a reader writes, checks, runs and tests a limit plugin', async t => {
  const modules = join(folder, 'node_modules')
  await walk(t, 'docs/plugins.md', {
    installed,
    before: {
      // Links what would be published instead of asking the registry.
      'mkdir my-limits': ({ run }) =>
        run(
          `npm() { if [ "$1 $2" = 'install sluicegate' ]; then ln -s ${modules}; else command npm "$@"; fi; }`,
        ),
    },
  })
})
