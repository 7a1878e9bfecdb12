/**
 * All limits of a request are asked in one call: when one of them refuses, the others are not charged; on each store.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { redisUrl } from '../helpers/redis.js'
import { onEachStore, redisSettings } from '../helpers/stores.js'
import { sleep, unhurried, within } from '../helpers/wait.js'
import { rulesOf, start } from './decide/volumes.js'

// The tests wait for whole seconds to pass.
t.jobs = 2
/** In ms: requests that must fall into one second of a burst are sent within this time. */
const SOON = 900

const limitsOf = (burst: number, sustained: number) => `version: 1
kind: project-limits
buckets: { writes: [/x] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { writes: { burst: ${burst}, sustained: ${sustained} } }
`
const flood = (quota: string, more = '') =>
  rulesOf(`id: flood, match: [POST /x], key: [project], quota: ${quota}${more}, mode: enforce`)

const passed = (answers: readonly { status: number }[]) =>
  answers.filter(({ status }) => status === 200).length

onEachStore(
  t,
  'a request a bucket refuses charges no volumetric rule, even among simultaneous ones',
  (t, store) =>
    unhurried(async () => {
      const here = await start(t, (await store.settings(t)) as string, {
        'limits.yaml': limitsOf(2, 600),
        'volumetric.yaml': flood('{ requests: 5, per: 60s }', ', blockFor: 60s'),
      })
      const many = () => within(SOON, () => Promise.all(Array.from({ length: 8 }, () => here.post('/x'))))
      const first = await many()
      t.equal(passed(first), 2)
      t.ok(
        first.every(({ status, body }) => status === 200 || !body.includes('abnormal')),
        'the bucket refused',
      )
      await sleep(1050)
      t.equal(passed(await many()), 2, 'no client is blocked')
      await sleep(1050)
      t.equal(passed(await many()), 1, 'the fifth request is the last the volumetric rule admits')
    }),
)

onEachStore(t, 'simultaneous refused requests leave the volumetric rule its remaining quota', (t, store) =>
  unhurried(async () => {
    const here = await start(t, (await store.settings(t)) as string, {
      'limits.yaml': limitsOf(10, 56),
      'volumetric.yaml': flood('{ requests: 12, per: 60s }'),
    })
    const all = await within(SOON, () => Promise.all(Array.from({ length: 24 }, () => here.post('/x'))))
    t.equal(passed(all), 10)
    await sleep(1350)
    t.strictSame(await here.statuses(3, '/x'), [200, 200, 429], 'two of twelve are left')
  }),
)

onEachStore(
  t,
  'a slot, a bucket and a volumetric rule are charged together or not at all',
  async (t, store) => {
    const here = await start(t, (await store.settings(t)) as string, {
      'limits.yaml': limitsOf(1000, 3),
      'volumetric.yaml': flood('{ requests: 2, per: 60s }'),
      'in-flight.yaml':
        'version: 1\nkind: in-flight\nrules:\n  - { id: one-at-a-time, match: [POST /x], key: [project], mode: enforce }',
    })
    t.strictSame(await here.statuses(4, '/x'), [200, 200, 429, 429])
    const refused = await here.post('/x')
    t.match(refused.json(), { code: 'abnormal-usage', 'violated-policies': ['flood'] })
    t.equal(
      (await here.post('/x', {}, { method: 'GET' })).status,
      200,
      'the bucket still has its third request',
    )
  },
)

onEachStore(t, 'a cached refusal names only the windows that are still full', (t, store) =>
  unhurried(async () => {
    const here = await start(t, (await store.settings(t)) as string, { 'limits.yaml': limitsOf(3, 6) })
    await here.statuses(3, '/x')
    await sleep(1050)
    const both = await within(SOON, async () => {
      await here.statuses(3, '/x')
      return here.post('/x')
    })
    t.match(both.json(), { 'violated-policies': ['writes.burst', 'writes.sustained'] })
    await sleep(1250)
    const later = await here.post('/x')
    t.match(later.json(), { 'violated-policies': ['writes.sustained'] })
    t.match(later.headers.ratelimit, /"writes\.burst";r=3/, 'the burst window is empty again')
  }),
)

t.test('a bucket, a volumetric rule and a slot take one script call', { buffered: false }, async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const here = await start(t, redisSettings(url), {
    'limits.yaml': limitsOf(1000, 1000),
    'volumetric.yaml': rulesOf(
      'id: flood, match: [POST /x], key: [client-ip], quota: { requests: 1000, per: 60s }, mode: enforce',
    ),
    'in-flight.yaml':
      'version: 1\nkind: in-flight\nrules:\n  - { id: one-at-a-time, match: [POST /x], key: [project], mode: enforce }',
  })
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const calls = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
  await here.post('/x')
  const before = await calls()
  t.strictSame(await here.statuses(20, '/x'), Array(20).fill(200))
  t.equal((await calls()) - before, 20)
})
