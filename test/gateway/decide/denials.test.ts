/** Refusals by Redis are cached: a flood costs Redis nothing, and no client is refused for longer than Redis said. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { ClusterStore } from '../../../gateway/decide/redis/cluster-store.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { oneBucket } from '../../helpers/policies.js'
import { redisCommand, redisUrl, scriptCalls, startRedis } from '../../helpers/redis.js'
import { redisSettings } from '../../helpers/stores.js'
import { waitUntil } from '../../helpers/wait.js'
import { decide, limits, onRedis, slots } from './deciding.js'
import { LIMITS, rulesOf, start } from './volumes.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

t.test('a key that Redis refused is refused in process until it could pass', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const rules = [limits('flooded', 2, 100), slots('write', 1)]
  for (let i = 0; i < 2; i += 1) (await decide(world, rules)).release()
  for (let i = 0; i < 1000; i += 1) {
    const verdict = await decide(world, rules)
    t.equal(verdict.allowed, false)
    if (i % 100 === 0) world.at += 90
    if (verdict.allowed) break
  }
  t.ok(world.calls.length < 10, `${world.calls.length} calls for 1000 refusals`)
  const verdict = await decide(world, rules)
  const reset = verdict.outcomes[0]?.readings[0]?.resetMs ?? 0
  t.ok(reset > 0 && reset <= 100, `the remaining time is counted down: ${reset} ms`)
  world.at += reset
  t.equal((await decide(world, rules)).allowed, true, 'the request passes when the refusal said it would')
})

t.test('a cached refusal ends when its quota is edited', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const tight = [limits('edited', 1, 1)]
  await decide(world, tight)
  t.equal((await decide(world, tight)).allowed, false)
  t.equal((await decide(world, [limits('edited', 3, 3)])).allowed, true, 'a raised quota admits at once')
  t.equal(
    (await decide(world, [limits('edited', 2, 2)])).allowed,
    false,
    'a lowered quota keeps what was spent',
  )
})

t.test('a cached refusal does not hide a released slot', async t => {
  const open = await onRedis(t)
  if (open === undefined) return
  const world = open()
  const rules = [slots('one', 1, { key: ['project', 'full-path'] })]
  const first = await decide(world, rules)
  t.equal((await decide(world, rules)).allowed, false)
  first.release()
  t.equal((await decide(world, rules)).allowed, true)
})

t.test('a refusal for tokens that another refused request had reserved is soon forgotten', async t => {
  const open = await onRedis(t, store => new ClusterStore(store))
  if (open === undefined) return
  const world = open()
  const byClient = limits('by-client', 2, 2, { key: ['client-ip'] })
  const one = slots('single', 1)
  const first = await decide(world, [byClient, one])
  const refused = await Promise.all([1, 2, 3].map(() => decide(world, [byClient, one])))
  const results = refused.map(({ outcomes }) => outcomes.find(({ result }) => result === 'limited')?.rule.id)
  t.same(results, ['single', 'by-client', 'by-client'], 'the first one reserves the last token')
  first.release()
  world.at += 1100
  t.equal((await decide(world, [byClient, one])).allowed, true)
})

t.test('requests that another limit refuses do not shut out a client with leased tokens left', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  let arrive = (_finish: () => void) => {}
  const arrived = new Promise<() => void>(resolve => {
    arrive = resolve
  })
  const upstream = await startApp(t, (req, res) => {
    if (req.url === '/slow') arrive(() => res.end())
    else res.end()
  })
  const gateway = await testGateway(t, {
    upstream,
    settings: redisSettings(url),
    policies: {
      'limits.yaml': oneBucket(2, { lease: true }),
      'single.yaml':
        'version: 1\nkind: in-flight\nrules: [{ id: single, match: ["POST /**"], key: [project], max: 1, mode: enforce }]\n',
    },
  })
  const headers = { host: 'acme.localhost' }
  const post = async (path: string) =>
    (await send(`${gateway.url}${path}`, { method: 'POST', headers })).status
  const slow = post('/slow')
  const finish = await arrived
  t.same(new Set(await Promise.all(Array.from({ length: 30 }, () => post('/x')))), new Set([429]))
  finish()
  t.equal(await slow, 200)
  await waitUntil('its other token to be there again', async () => (await post('/x')) === 200)
})

t.test(
  'a flood of refused requests costs Redis almost no calls, and a raised limit ends it at once',
  async t => {
    if (!redisCommand(t)) return
    const server = await startRedis()
    t.teardown(() => server.stop())
    const redis = new Redis(server.url)
    t.teardown(() => redis.disconnect())
    const upstream = await startApp(t, (_req, res) => res.end())
    const gateway = await testGateway(t, {
      upstream,
      settings: redisSettings(server.url),
      policies: { 'limits.yaml': oneBucket(400, { burst: 100_000 }) },
    })
    const ask = async () => (await send(`${gateway.url}/x`, { headers: { host: 'acme.localhost' } })).status
    for (let i = 0; i < 20; i += 1) await Promise.all(Array.from({ length: 21 }, ask))
    const before = await scriptCalls(redis)
    const statuses = new Set<number>()
    for (let i = 0; i < 100; i += 1) {
      for (const status of await Promise.all(Array.from({ length: 30 }, ask))) statuses.add(status)
    }
    t.same([...statuses], [429])
    const calls = (await scriptCalls(redis)) - before
    t.ok(calls <= 3, `${calls} calls for 3000 refusals`)
    writeFileSync(join(gateway.folder, 'policies', 'limits.yaml'), oneBucket(500, { burst: 100_000 }))
    await gateway.reloader.reload('admin')
    t.equal(await ask(), 200)
  },
)

t.test('a client already known to be refused costs Redis almost no commands', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const rule = (id: string, requests: number) =>
    `id: ${id}, match: [POST /x], key: [client-ip], quota: { requests: ${requests}, per: 1m }, mode: enforce`
  const here = await start(t, redisSettings(url), {
    'volumetric.yaml': rulesOf(rule('narrow', 1), rule('wide', 1000)),
    'limits.yaml': LIMITS,
  })
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
  t.strictSame(await here.statuses(2, '/x'), [200, 429])
  const before = await commands()
  const refused = await here.statuses(300, '/x')
  t.ok(refused.every(status => status === 429))
  const spent = (await commands()) - before
  t.ok(spent < 20, `${spent} commands`)
  const store = new RedisStore({ url, log: quiet })
  t.teardown(() => store.close())
  await store.answers(5000)
  const [wide] = await store.peek([
    {
      key: 'sluice:1:*:{volumetric:wide:9:127.0.0.1}:e',
      demand: { kind: 'meter', quota: 1000, ms: 60_000, blockMs: 0 },
      group: 0,
      onStoreError: 'local',
    },
  ])
  t.match(wide?.counts, [{ used: 2 }], 'the other rule counted only the admitted request')
})
