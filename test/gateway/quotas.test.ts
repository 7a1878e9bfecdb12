/** Quotas with any window, with or without a cost, as clients experience them, on each counter store. */
import t, { type Test } from 'tap'
import { lengthAt } from '../../gateway/decide/windows/calendar.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { stores } from '../helpers/stores.js'

const POLICY = `version: 1
kind: project-limits
buckets:
  long: [/long]
  exports: { match: [POST /exports, { pattern: POST /exports/all, cost: 10 }], cost: 4 }
  health: [/healthz]
  own: [/own]
  catch-all: ["*"]
limits:
  - for: [{}]
    quotas:
      long: { burst: 5, windows: [{ name: hour, requests: 3, per: 1h }, { name: month, requests: 100, per: month, timezone: Europe/Berlin }] }
      exports: { windows: [{ name: day, requests: 16, per: day }] }
      health: unlimited
      own: { burst: 9, windows: [{ name: hour, requests: 2, per: 1h }] }
      catch-all: { burst: 1, sustained: 1 }
`

for (const store of stores) {
  t.test(`quotas ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    let projects = 0
    const start = async (t: Test, overrides = '{}') => {
      projects += 1
      const id = `quota-${projects}`
      const upstream = await startApp(t, (_req, res) => {
        res.setHeader('X-RateLimit-Limit', '7').setHeader('RateLimit', '"theirs";r=7').end()
      })
      const gateway = await testGateway(t, {
        upstream,
        settings,
        policies: { 'limits.yaml': POLICY },
        projects: `version: 1\nprojects: [{ id: ${id}, plan: growth, environment: production, hosts: [${id}.localhost], overrides: ${overrides} }]\n`,
      })
      return (path: string, method = 'GET') =>
        send(gateway.url + path, { method, headers: { host: `${id}.localhost` } })
    }

    t.test(
      'windows of all lengths are charged together, with seconds in fields and readable units in details',
      async t => {
        const ask = await start(t)
        const month = lengthAt({ unit: 'month', timezone: 'Europe/Berlin' }, Date.now()) / 1000
        const first = await ask('/long')
        t.equal(
          first.headers['ratelimit-policy'],
          `"long.burst";q=5;w=1, "long.hour";q=3;w=3600, "long.month";q=100;w=${month}`,
        )
        t.match(first.headers.ratelimit, /"long.hour";r=2;t=3[56]\d\d, "long.month";r=99;t=\d+$/)
        t.equal(first.headers['x-ratelimit-remaining'], '2')
        await ask('/long')
        await ask('/long')
        const refused = await ask('/long')
        t.equal(refused.status, 429)
        const wait = Number(refused.headers['retry-after'])
        t.ok(wait > 3500 && wait <= 3600, `${wait} s`)
        t.match(refused.json(), { 'violated-policies': ['long.hour'] })
        t.match(
          refused.json().detail,
          /^Bucket long admits 3 requests per hour, and they are used up\. Try again in (59 min( \d+ s)?|1 h)\.$/,
        )
        t.match(refused.headers.ratelimit, /"long.month";r=97/, 'the refused request charged nothing')
      },
    )

    t.test('a request costs what its bucket or pattern says, in full or not at all', async t => {
      const ask = await start(t)
      const spend = async (path: string) => {
        const { status, headers } = await ask(path, 'POST')
        return [status, /r=(\d+)/.exec(String(headers.ratelimit))?.[1]]
      }
      t.strictSame(await spend('/exports'), [200, '12'])
      t.strictSame(await spend('/exports/all'), [200, '2'])
      const refused = await ask('/exports/all', 'POST')
      t.equal(refused.status, 429)
      t.match(
        refused.json().detail,
        /^Bucket exports admits 16 requests per day \(UTC\); this one counts as 10, and fewer are left\. Try again in /,
      )
      t.strictSame(await spend('/exports'), [429, '2'])
    })

    t.test('a cached refusal at one cost does not refuse a lower cost', async t => {
      const ask = await start(t)
      t.equal((await ask('/exports/all', 'POST')).status, 200)
      t.equal((await ask('/exports/all', 'POST')).status, 429)
      t.equal((await ask('/exports', 'POST')).status, 200)
      t.equal((await ask('/exports/all', 'POST')).status, 429)
    })

    t.test('an unlimited bucket takes its requests, counts nothing and sends no fields', async t => {
      const ask = await start(t)
      for (let i = 0; i < 5; i += 1) {
        const { status, headers } = await ask('/healthz')
        t.equal(status, 200)
        t.strictSame(
          Object.keys(headers).filter(name => name.includes('ratelimit')),
          [],
        )
      }
      t.equal((await ask('/else')).status, 200, 'the catch-all bucket was not charged')
      t.equal((await ask('/else')).status, 429)
    })

    t.test('an override keeps what it does not name, or removes the limit', async t => {
      const ask = await start(
        t,
        '{ own: { burst: 8, windows: [{ name: day, requests: 5, per: day }] }, catch-all: unlimited }',
      )
      t.equal(
        (await ask('/own')).headers['ratelimit-policy']?.toString().replace(/w=\d{5,}/, 'w=day'),
        '"own.burst";q=8;w=1, "own.hour";q=2;w=3600, "own.day";q=5;w=day',
      )
      for (let i = 0; i < 3; i += 1) t.equal((await ask('/else')).status, 200)
    })
  })
}
