/** The pages about policies and about other gateways' configurations, which show whole files. */
import t from 'tap'
import { walk } from './walk.js'

t.test('docs/policies.md: a missing row is reported by name', async t => {
  await walk(t, 'docs/policies.md')
})

t.test('docs/migration.md: the import reports what it leaves out of an nginx.conf', async t => {
  await walk(t, 'docs/migration.md')
})
