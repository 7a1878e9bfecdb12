/** The pages about policies and about other gateways' configurations, which show whole files. */
import t from 'tap'
import { walk } from './walk.js'

t.test('docs/policies.md: a row that is missing is named', async t => {
  await walk(t, 'docs/policies.md')
})

t.test('docs/migration.md: what is left out of an nginx.conf is said', async t => {
  await walk(t, 'docs/migration.md')
})
