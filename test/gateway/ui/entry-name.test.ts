import t from 'tap'
import { entryName } from '../../../gateway/ui/entry-name.js'

t.test('an access entry is named after its action and place', async t => {
  t.equal(entryName('deny', 'networks', ['203.0.113.0/24']), 'deny-203.0.113.0-24')
  t.equal(entryName('exempt', 'projects', ['acme']), 'exempt-acme')
})

t.test('different places have different names, so no entry replaces another by accident', async t => {
  const long = `host:${'a'.repeat(200)}`
  const places = [
    ['networks', ['2001:db8::48']],
    ['networks', ['2001:db8::/48']],
    ['networks', ['203.0.113.7']],
    ['networks', ['203.0.113.7', '203.0.113.8']],
    ['networks', ['203.0.113.8', '203.0.113.7']],
    ['projects', ['203.0.113.7']],
    ['projects', ['203.0.113.7', '203.0.113.8']],
    ['networks', ['10.0.0.0/8']],
    ['projects', ['10.0.0.0-8']],
    ['projects', ['acme']],
    ['projects', ['Acme']],
    ['projects', ['host:acme']],
    ['projects', [`${long}.example`]],
    ['projects', [`${long}.test`]],
  ] as const
  const names = places.map(([who, each]) => entryName('deny', who, each))
  t.equal(new Set(names).size, places.length, names.join(' '))
  for (const name of names) t.match(name, /^[a-z][a-z0-9._-]{0,63}$/)
  t.same(
    names,
    places.map(([who, each]) => entryName('deny', who, each)),
    'the same place has the same name',
  )
})
