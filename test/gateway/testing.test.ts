/** The test tools for plugin authors behave as a gateway does. */
import t from 'tap'
import { Duration, definePlugin, Type } from '../../gateway/plugin.js'
import { factsOf, settingsOf, TestClock, TestCounters } from '../../gateway/testing.js'

const uploads = definePlugin({
  name: 'uploads',
  kind: 'limit',
  schema: Type.Object(
    { kib: Type.Integer({ minimum: 1 }), per: Duration({ default: '60s' }) },
    { additionalProperties: false },
  ),
  create: () => ({
    demand: ({ rule }) => ({ kind: 'meter', quota: rule.config.kib, ms: rule.config.per, blockMs: 0 }),
  }),
})

t.test('factsOf reads the same facts from a request as the gateway', async t => {
  const facts = factsOf({
    target: '/a//b/../c?q=1',
    headers: { Host: 'Acme.test:80', Authorization: 'Bearer x', 'X-Forwarded-For': '2001:db8::1' },
    peer: '10.0.0.1',
    trustedProxies: ['10.0.0.0/8'],
  })
  t.match(facts, { method: 'GET', path: '/a/c', query: '?q=1', host: 'acme.test', trusted: true })
  t.match(facts, { client: '2001:db8::1', network: '2001:db8::/64', authenticated: true })
  t.equal(facts.header('authorization'), 'Bearer x')
  t.match(factsOf(), { path: '/', host: 'localhost', authenticated: false, trusted: false })
  t.throws(() => factsOf({ target: '/%00' }), { code: 'bad-target' }, 'a refused request has no facts')
})

t.test('settingsOf checks and completes settings like sluice check', async t => {
  t.same(settingsOf(uploads, { kib: 2 }), { kib: 2, per: 60_000 })
  t.throws(() => settingsOf(uploads, { kb: 2, kib: 0 }), {
    message: /Unknown key "kb"\. Did you mean "kib"\?/,
  })
})

t.test('TestCounters charge demands, and time passes only when the test advances it', async t => {
  const clock = new TestClock()
  const counters = new TestCounters(clock)
  const demand = { kind: 'meter', quota: 2, ms: 1000, blockMs: 0 } as const
  t.match(counters.take('a', demand), { granted: true, counts: [{ left: 1 }] })
  t.ok(counters.take('a', demand).granted)
  t.match(counters.take('a', demand), { granted: false, counts: [{ left: 0, resetMs: 1000 }] })
  t.ok(counters.take('b', demand).granted, 'another key has its own counter')
  clock.pass(1001)
  t.ok(counters.take('a', demand).granted)

  const slots = { kind: 'slots', max: 1, ttlMs: 5000 } as const
  const held = counters.take('s', slots)
  t.notOk(counters.take('s', slots).granted)
  held.release()
  t.ok(counters.take('s', slots).granted)
})
