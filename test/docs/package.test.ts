/** What a reader does with the npm package, in a folder without a checkout. */
import { join } from 'node:path'
import t from 'tap'
import { packed } from '../package/packed.js'
import { serveHello, startFromRoot } from './servers.js'
import { walk } from './walk.js'

const { folder, installed } = packed(t)

t.test('README.md: a service of yours behind a limit in a minute, from the package', async t => {
  await walk(t, 'README.md', {
    installed,
    before: { 'serve --upstream': serveHello, 'npm start': startFromRoot },
  })
})

t.test('docs/plugins.md: a limit of one’s own is written, checked, run and tested', async t => {
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
