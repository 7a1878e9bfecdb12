/** Counters that are not per project only, and those of unknown callers, are read and reset by the parts of their key. */
import t from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { start } from './operated.js'

t.test('a counter can be named by a header, and an unknown caller by its address', async t => {
  const { ask, url } = await start(t)
  const post = async () =>
    (
      await send(`${url}/header`, {
        method: 'POST',
        headers: { host: 'example.test', 'x-device': 'canary' },
      })
    ).status
  t.same([await post(), await post()], [200, 429])
  const named = `header=${encodeURIComponent('x-device: canary')}`
  const told = await ask(`/projects/client:127.0.0.1/counters?${named}`)
  t.match(told.body, /"rule":"by-header"[^\]]*"used":1,"attempted":2/)
  t.match(told.body, /"policy":"all.sustained"[^}]*"used":1/)
  t.equal((await ask(`/counters/by-header?${named}`, 'DELETE')).status, 200)
  t.equal(await post(), 200)
})

const SHARED = `version: 1
kind: volumetric
rules:
  - { id: device, match: [/device], key: [header:x-device], missing: shared, quota: { requests: 1, per: 60s } }
  - { id: tls, match: [/tls], key: [ja4], missing: shared, quota: { requests: 1, per: 60s } }
  - { id: person, match: [/person], key: [email-or-flow], missing: shared, quota: { requests: 1, per: 60s } }
`

t.test('an empty value names the counter shared by requests without the part', async t => {
  const upstream = await startApp(t, (_req, res) => res.end())
  const { url, adminUrl } = await testGateway(t, { upstream, policies: { 'shared.yaml': SHARED } })
  for (const [rule, path, named] of [
    ['device', '/device', 'header=x-device:'],
    ['tls', '/tls', 'ja4='],
    ['person', '/person', 'email='],
  ] as const) {
    const post = async () => (await send(url + path, { method: 'POST' })).status
    t.same([await post(), await post()], [200, 429])
    const told = await send(`${adminUrl}/projects/client:127.0.0.1/counters?${named}`)
    t.match(told.body, new RegExp(`"rule":"${rule}"[^\\]]*"used":1,"attempted":2`))
    t.equal((await send(`${adminUrl}/counters/${rule}?${named}`, { method: 'DELETE' })).status, 200)
    t.equal(await post(), 200)
  }
})

t.test('reading many counters leaves requests their turns', async t => {
  const buckets = Array.from({ length: 300 }, (_, i) => `b${i}`)
  const quotas = buckets.map(name => `      ${name}: { burst: 5, sustained: 100 }`).join('\n')
  const policy = `version: 1
kind: project-limits
buckets:
${buckets.map((name, i) => `  ${name}: [/p${i}]`).join('\n')}
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
${quotas}
`
  const upstream = await startApp(t, (_req, res) => res.end())
  const { adminUrl } = await testGateway(t, { upstream, policies: { 'many.yaml': policy } })
  let turns = 0
  let counting = true
  const turn = (): void => {
    turns += 1
    if (counting) setImmediate(turn)
  }
  turn()
  const told = await send(`${adminUrl}/projects/acme/counters`)
  counting = false
  t.equal(told.json<{ counters: unknown[] }>().counters.length, 300)
  t.ok(turns > 15, `there were ${turns} turns`)
})
