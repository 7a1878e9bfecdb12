/** docs/plugins.md: a limit of one's own, from an empty folder with the package in it. */
import { join } from 'node:path'
import t from 'tap'
import { packed } from '../package/packed.js'
import { walk } from './walk.js'

t.test('docs/plugins.md: a limit of one’s own is written, checked, run and tested', async t => {
  const { folder, installed } = packed(t)
  const modules = join(folder, 'node_modules')
  await walk(t, 'docs/plugins.md', {
    installed,
    before: {
      // The registry is not asked: what would be published is there.
      'mkdir my-limits': ({ run }) =>
        run(
          `npm() { if [ "$1 $2" = 'install sluicegate' ]; then ln -s ${modules}; else command npm "$@"; fi; }`,
        ),
    },
  })
})
