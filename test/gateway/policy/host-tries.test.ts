import fc from 'fast-check'
import t from 'tap'
import { HostTries } from '../../../gateway/policy/host-tries.js'
import { parsePattern } from '../../../gateway/policy/pattern.js'

function triesOf(entries: readonly (readonly [string | undefined, string])[]): HostTries<string> {
  const tries = new HostTries<string>()
  for (const [host, path] of entries) tries.add(host, parsePattern(path), `${host ?? 'any'} ${path}`)
  return tries
}

t.test('the most specific host that has a pattern for the path wins', async t => {
  const tries = triesOf([
    ['api.acme.test', '/v1/**'],
    ['*.acme.test', '/v1/**'],
    ['*.acme.test', '/v2/**'],
    ['*.test', '/v3/**'],
    ['*.deep.acme.test', '/v2/**'],
    [undefined, '/**'],
  ])
  const found = (host: string, path: string) => tries.find(host, 'GET', path)?.value
  t.equal(found('api.acme.test', '/v1/x'), 'api.acme.test /v1/**')
  t.equal(found('api.acme.test', '/v2/x'), '*.acme.test /v2/**', 'what a host lacks falls to the next')
  t.equal(found('api.acme.test', '/v3/x'), '*.test /v3/**')
  t.equal(found('api.acme.test', '/v4/x'), 'any /**')
  t.equal(found('a.b.acme.test', '/v1/x'), '*.acme.test /v1/**', 'a wildcard stands for several labels, too')
  t.equal(found('a.deep.acme.test', '/v2/x'), '*.deep.acme.test /v2/**')
  t.equal(found('deep.acme.test', '/v2/x'), '*.acme.test /v2/**')
  t.equal(found('acme.test', '/v1/x'), 'any /**', 'and not for the name itself')
  t.equal(found('notacme.test', '/v1/x'), 'any /**')
})

t.test('finds what a comparison with every host finds', async () => {
  const label = fc.constantFrom('a', 'b', 'ab')
  const name = fc.array(label, { minLength: 1, maxLength: 5 }).map(labels => labels.join('.'))
  const host = fc.tuple(fc.boolean(), name).map(([any, one]) => (any ? `*.${one}` : one))
  fc.assert(
    fc.property(fc.uniqueArray(host, { maxLength: 12 }), name, (hosts, asked) => {
      const tries = triesOf(hosts.map(one => [one, '/**'] as const))
      const matching = hosts.filter(one => (one[0] === '*' ? asked.endsWith(one.slice(1)) : one === asked))
      // A name beats a wildcard, and a longer wildcard a shorter one.
      const rank = (one: string) => (one[0] === '*' ? one.length : Number.POSITIVE_INFINITY)
      const best = matching.sort((one, other) => rank(other) - rank(one))[0]
      return tries.find(asked, 'GET', '/x')?.value === (best && `${best} /**`)
    }),
    { numRuns: 2000 },
  )
})

t.test('a host of very many labels is looked up as quickly as any', async t => {
  const tries = triesOf([['*.acme.test', '/**']])
  const long = `${'a.'.repeat(8000)}acme.test`
  const startedAt = performance.now()
  for (let i = 0; i < 1000; i++) tries.find(long, 'GET', '/x')
  t.ok(performance.now() - startedAt < 500, `${performance.now() - startedAt} ms`)
  t.equal(tries.find(long, 'GET', '/x')?.value, '*.acme.test /**')
})
