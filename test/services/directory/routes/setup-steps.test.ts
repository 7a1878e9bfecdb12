/** The steps on the set-up page are the same as in docs/directory.md. */
import t from 'tap'
import { directoryTypes } from '../../../../services/directory/model.js'
import { providerOf, providers } from '../../../../services/directory/setup/steps.js'
import { projectFile } from '../../../helpers/root.js'

const docs = projectFile('docs/directory.md').replace(/\s+/g, ' ').replaceAll("'", '’')

t.test('every name in the steps of a provider is in docs/directory.md', async t => {
  const named = providers.flatMap(({ name, steps }) =>
    steps.flatMap(step => step.split('*').filter((_, i) => i % 2 === 1)).map(words => ({ name, words })),
  )
  t.ok(named.length > providers.length)
  for (const { name, words } of named) {
    t.ok(
      words.split(' → ').every(word => docs.includes(word)),
      `${name}: ${words}`,
    )
  }
})

t.test("the page starts with the steps of the directory's own provider", async t => {
  t.same(
    directoryTypes.map(type => providerOf(undefined, type).key),
    ['entra-id', 'onelogin', 'okta', 'jumpcloud', 'other', 'other', 'other'],
  )
  t.equal(providerOf('onelogin', 'okta-scim-v2').key, 'onelogin')
  t.equal(providerOf('<script>', 'okta-scim-v2').key, 'okta')
})
