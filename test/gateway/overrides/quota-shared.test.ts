/** Negotiated limits of several gateways and workers on one Redis, and what becomes of them without it. */
import { Redis } from 'ioredis'
import t from 'tap'
import type { send } from '../../helpers/http.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { redisSettings } from '../../helpers/stores.js'
import { twoWorkers } from '../../helpers/two-workers.js'
import { waitUntil } from '../../helpers/wait.js'
import { callsOf, POLICIES, type Reported, start } from './negotiating.js'

t.test('gateways on one Redis share negotiated limits, even when Redis lost its data', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const settings = redisSettings(redis.url)
  const [one, other] = [await start(t, settings), await start(t, settings)]
  t.equal((await one.put('acme', 'all', { sustained: 5 })).status, 201)
  t.equal((await other.put('acme', 'all', { sustained: 6 })).status, 200, 'the other knows it at once')
  await waitUntil('the first follows', async () => /q=6;/.test(await policy(one)), 3000)
  const third = await start(t, settings)
  t.match(await policy(third), /q=6;/, 'it is in force from the first request on')
  t.same(await third.overrides(), await other.overrides())

  const projects = ['acme', 'dev', 'big:corp', 'acme', 'dev', 'big:corp']
  const made = await Promise.all(
    projects.map((id, i) => [one, other, third][i % 3]?.put(id, 'export', { sustained: 20 + i })),
  )
  t.same(made.map(answer => answer?.status).sort(), [200, 200, 200, 201, 201, 201])
  const gateways = [one, other, third]
  await waitUntil('all agree', async () => {
    const [first, ...rest] = await Promise.all(gateways.map(async one => JSON.stringify(await one.set())))
    return rest.every(set => set === first)
  })
  t.equal((await one.set()).length, 4)

  const client = new Redis(redis.url)
  await client.flushall()
  await waitUntil('they are stored again', async () => (await client.keys('sluice:1:*quotas')).length === 1)
  client.disconnect()
  t.equal((await third.set()).length, 4)

  await redis.kill()
  const away = await one.put('acme', 'all', { burst: 1 })
  t.match(away, { status: 503, body: /Redis does not answer: nothing has changed/ })
  t.match(await policy(one), /q=6;/, 'the last known limits stay in force')
})

const policy = async ({ get }: { get: (path: string) => ReturnType<typeof send> }): Promise<string> =>
  String((await get('/x')).headers['ratelimit-policy'])

t.test('a limit that another release has stored in another form affects no request', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { admitted, put, set, lines } = await start(t, redisSettings(redis.url))
  await put('dev', 'all', { sustained: 5 })
  const client = new Redis(redis.url)
  const [key = ''] = await client.keys('sluice:1:*quotas')
  const stored = { project: 'acme', bucket: 'all', quota: { burst: 'many' }, why: 'w', by: 'b', at: '2026' }
  await client.hset(key, 'acme/all', JSON.stringify(stored), 'acme/search', 'no JSON')
  const [, since, ids] = String(await client.hget('sluice:1:access', '#')).split('.')
  await client.hset('sluice:1:access', '#', `1000.${since}.another,${ids}`)
  client.disconnect()
  const logged = () => lines.flatMap(({ collection, id }) => (collection === 'quotas' ? String(id) : []))
  await waitUntil('both are logged', () => logged().length === 2, 3000)
  t.same(logged().sort(), ['acme/all', 'acme/search'])
  t.match(await set(), [{ project: 'dev' }])
  t.equal(await admitted('/x'), 3)
  t.equal(await admitted('/x', 'dev'), 5)
})

t.test('while Redis is away, the local fallback counts by the negotiated limit', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { admitted, put } = await start(t, redisSettings(redis.url))
  await put('acme', 'all', { sustained: 12 })
  t.equal(await admitted('/x'), 12)
  await put('acme', 'all', { sustained: 20 })
  await redis.kill()
  t.equal(await admitted('/x'), 8, 'with what was spent before it changed')
})

t.test(
  'with onError: closed, a negotiated limit answers 503 while Redis is away, and none while it is unlimited',
  async t => {
    if (!redisCommand(t)) return
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const { get, put } = await start(t, `redis: ${redis.url}\nstore: { deadline: 200ms, onError: closed }`)
    await put('acme', 'all', { sustained: 12 })
    await put('dev', 'all', { unlimited: true })
    await redis.kill()
    t.equal((await get('/x')).status, 503)
    t.equal((await get('/x', 'dev')).status, 200)
  },
)

t.test('leased tokens are never more than the negotiated limit, whichever way it changes', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const settings = redisSettings(redis.url)
  const [one, other] = [await start(t, settings), await start(t, settings)]
  const quota = (sustained: number) => ({ sustained, lease: true })
  await one.put('acme', 'all', quota(40))
  await waitUntil('the other follows', async () => (await other.set())[0]?.in_force === true)
  let all = (await one.admitted('/x')) + (await other.admitted('/x'))
  t.ok(all >= 36 && all <= 40, `${all} of 40`)
  await other.put('acme', 'all', quota(50))
  await one.put('dev', 'all', quota(30))
  all += (await other.admitted('/x')) + (await one.admitted('/x'))
  t.ok(all >= 45 && all <= 50, `${all} of 50`)
  await one.put('acme', 'all', quota(10))
  t.equal(await one.admitted('/x'), 0)
  await one.undo('acme', 'all')
  t.equal(await one.admitted('/x'), 0)
})

t.test('a negotiated limit applies on all workers, including one started later', async t => {
  const gateway = await twoWorkers(t, POLICIES)
  if (gateway === undefined) return
  const { get, put, json, undo, explain } = callsOf(gateway)
  const quotas = async () => {
    const seen = new Set<string>()
    for (let i = 0; i < 12; i += 1) {
      const fields = (await get('/x')).headers['ratelimit-policy']
      seen.add(/q=(\d+);/.exec(String(fields))?.[1] ?? '')
    }
    return [...seen]
  }
  t.same(await quotas(), ['3'])
  t.equal((await put('acme', 'all', { sustained: 9 })).status, 201)
  t.same(await quotas(), ['9'], 'as soon as the call is answered')
  t.match(await explain('/x', { project: 'acme' }), { rules: [{ negotiated: { set_by: 'anna' } }] })
  t.match(await json('/policy?project=acme'), { buckets: [{ sustained: 9 }] })
  const pids = async () => {
    const { workers } = await json<{ workers: Reported[] }>('/state')
    return workers.map(({ pid }) => Number(pid))
  }
  const [killed = 0] = await pids()
  process.kill(killed, 'SIGKILL')
  await waitUntil(
    'a new worker',
    async () => {
      const now = await pids()
      return now.length === 2 && !now.includes(killed)
    },
    10_000,
  )
  t.same(await quotas(), ['9'])
  t.equal((await undo('acme', 'all')).status, 200)
  t.same(await quotas(), ['3'])
})
