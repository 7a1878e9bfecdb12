import fc from 'fast-check'
import t from 'tap'
import { compileRequestFields } from '../../../gateway/policy/route-fields.js'
import { compileText } from '../../../gateway/policy/route-values.js'
import type { Facts, Project } from '../../../gateway/types.js'

const FACTS = { id: 'r-1', path: '/a', host: 'acme.test', client: '192.0.2.1' } as Facts
const ACME: Project = { id: 'acme', plan: 'growth', environment: 'production' }

/** A value as it is written. */
const $ = (name: string) => `\${${name}}`

t.test('a text holds what it says of the request', async t => {
  const all = `${$('project.id')} ${$('project.plan')}/${$('project.environment')} ${$('client.address')} ${$('host')}${$('path')} #${$('request.id')}`
  t.equal(compileText(all)(FACTS, ACME), 'acme growth/production 192.0.2.1 acme.test/a #r-1')
  t.equal(compileText(all)(FACTS, undefined), ' / 192.0.2.1 acme.test/a #r-1', 'nobody has no name')
  t.equal(compileText('plain {path} $5')(FACTS, ACME), 'plain {path} $5')
  const named = compileText($('project.id'))
  t.equal(named(FACTS, { ...ACME, id: 'client:192.0.2.1', alias: 'host:shop.test' }), 'host:shop.test')
})

t.test('no project can end a line or a head, whatever its id is', async () => {
  const fields = compileRequestFields({ set: { 'x-id': `a${$('project.id')}b` } })
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', ' ', '\r', '\n', '\0', '\t', '\u2028', '\xe9', ':') }),
      id => {
        let text: string
        try {
          text = fields?.textFor(FACTS, { ...ACME, id }) ?? ''
        } catch {
          return /[\r\n\0\t\u2028]/.test(id)
        }
        return text === `x-id: a${id}b\r\n` && !/[\r\n\0]/.test(id)
      },
    ),
  )
})
