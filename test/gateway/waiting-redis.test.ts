/** Requests that wait for what Redis counts: for other gateways, in few calls, and while Redis goes away. */
import t from 'tap'
import { redisCommand, redisUrl, startRedis } from '../helpers/redis.js'
import { redisSettings } from '../helpers/stores.js'
import { waitUntil } from '../helpers/wait.js'
import { buckets, exportSlots, holding, metric, scene, waitingNow } from './waits.js'

t.test('a slot that another gateway gives back is found before the wait is over', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const options = { settings: redisSettings(url), policies: { 'slots.yaml': exportSlots('wait: 4s') } }
  const [one, other] = [await scene(t, options), await scene(t, options)]
  const first = one.ask('/exports', holding)
  await waitUntil('the slot to be held', () => one.app.waiting.length === 1)
  const second = other.ask('/exports', { method: 'POST' })
  await waitUntil('it to wait', async () => (await waitingNow(other.gateway, 'exports')) === 1)
  one.app.finish()
  t.equal((await first).status, 200)
  t.equal((await second).status, 200)
})

t.test('two gateways never admit more than the quota to those who wait', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const options = { settings: redisSettings(url), policies: buckets('wait: 5s', 'burst: 4') }
  const scenes = [await scene(t, options), await scene(t, options)]
  const startedAt = performance.now()
  const sent = scenes.flatMap(({ ask }) => Array.from({ length: 6 }, () => ask('/paced/a')))
  t.same([...new Set((await Promise.all(sent)).map(({ status }) => status))], [200])
  t.ok(performance.now() - startedAt >= 2000, 'twelve need two seconds more than the first four')
})

t.test('many who wait for a window that Redis counts are admitted in few calls', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const quota = 'windows: [{ name: w, requests: 20, per: 3s }], algorithm: fixed-window'
  const { gateway, ask } = await scene(t, {
    settings: redisSettings(url),
    policies: buckets('wait: 5s', quota),
  })
  const calls = () => metric(gateway, /^sluice_store_duration_seconds_count (\d+)$/m)
  const asked = Promise.all(Array.from({ length: 40 }, () => ask('/paced/a')))
  await waitUntil('half of them to wait', async () => (await waitingNow(gateway, 'paced')) === 20)
  const before = (await calls()) ?? 0
  t.same([...new Set((await asked).map(({ status }) => status))], [200])
  t.ok(Number(await calls()) <= before + 1, 'one call for twenty')
})

t.test('those who wait when Redis goes away are counted locally', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { gateway, ask } = await scene(t, {
    settings: `redis: ${redis.url}\nstore: { deadline: 50ms }`,
    policies: buckets('wait: 5s', 'windows: [{ name: w, requests: 1, per: 2s }]'),
  })
  t.equal((await ask('/paced/a')).status, 200)
  const waiting = ask('/paced/a')
  await waitUntil('it to wait', async () => (await waitingNow(gateway, 'paced')) === 1)
  await redis.stop()
  t.equal((await waiting).status, 200)
})

t.test('leased tokens are waited for', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { ask } = await scene(t, {
    settings: redisSettings(url),
    policies: buckets('wait: 5s', 'burst: 5, lease: true'),
  })
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask('/paced/a')))
  t.same([...new Set(answers.map(({ status }) => status))], [200])
})
