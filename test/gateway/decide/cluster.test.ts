/** Counters on a Redis Cluster of three nodes and behind a Sentinel: exact, during failovers, and with a node down. */
import { Cluster, Redis } from 'ioredis'
import t from 'tap'
import { hashSlot } from '../../../gateway/decide/redis/hash-slot.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import type { Demand } from '../../../gateway/demand.js'
import { matchList } from '../../helpers/lists.js'
import { redisCommand, startCluster, startRedis, startSentinel } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { meter, minute, storeOn } from './opened.js'

t.jobs = 3

t.test('a cluster of three nodes', { buffered: true }, async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startCluster()
  t.teardown(() => redis.stop())
  const { ask, store, lines, changes } = await storeOn(t, redis.url)
  const client = new Cluster([{ host: '127.0.0.1', port: redis.masters[0]?.port }])
  t.teardown(() => client.disconnect())
  /** Which of the three masters has a key. */
  const third = (key: string) => Math.floor((hashSlot(key) * 3) / 16_384)
  const keys = [0, 1, 2].map(master =>
    Array.from({ length: 50 }, (_, i) => `sluice:1:{project-${i}}:e:k`).find(key => third(key) === master),
  ) as [string, string, string]

  t.test('keys on every node are counted in Redis, those of one project in one call', async t => {
    for (const key of keys) {
      const tag = /\{.*\}/.exec(key)?.[0]
      t.equal(await client.cluster('KEYSLOT', key), hashSlot(key))
      const slot: Demand = { kind: 'slots', max: 1, ttlMs: 15_000 }
      const together = [minute(`${tag}:a`, 5), { ...minute(`${tag}:b`, 1), group: 1 }]
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(...together)))
      t.equal(answers.filter(([enforced]) => enforced?.granted).length, 5)
      t.equal(answers.filter(([, watched]) => watched?.granted).length, 1)
      t.ok(answers.flat().every(answer => answer.store === 'redis'))
      const inFlight = { ...minute(`${tag}:s`, 1), demand: slot }
      const [held] = await ask(minute(`${tag}:c`, 5), inFlight).then(answers => answers.slice(1))
      t.match(await ask(inFlight), [{ granted: false }])
      held?.release?.()
      t.match(await ask(inFlight), [{ granted: true, store: 'redis' }])
      const [spent] = await ask(minute(`${tag}:d`, 1))
      store.giveBack([minute(`${tag}:d`, 1)], [spent as Answer])
      t.match(await ask(minute(`${tag}:d`, 1)), [{ granted: true, counts: [{ used: 1 }] }])
    }
  })

  t.test('leased tokens and meters are counted on every node', async t => {
    for (const key of keys) {
      const { demand, ...rest } = minute(`${key}:leased`, 1000)
      const leased = { ...rest, demand: { ...demand, lease: true } } as Ask
      const stores = []
      for (let i = 0; i < 50; i += 1) stores.push((await ask(leased))[0]?.store)
      t.ok(stores.includes('lease') && !stores.includes('local'), [...new Set(stores)].join(' and '))
      const volume = meter(`${key}:volume`, 1)
      t.match(await ask(volume), [{ granted: true, store: 'redis' }])
      t.match(await ask(volume), [{ granted: false, store: 'redis' }])
    }
  })

  t.test('scripts flushed on every node are loaded again without a failure', async t => {
    for (const node of client.nodes('master')) await node.script('FLUSH')
    for (const key of keys) t.match(await ask(minute(key, 100)), [{ granted: true, store: 'redis' }])
  })

  t.test('a failover under traffic never admits more than the quota through Redis', async t => {
    const [key] = keys
    const granted = { redis: 0, local: 0 }
    let refused = 0
    let running = true
    const traffic = (async () => {
      while (running) {
        const [answer] = await ask(minute(`${key}:failover`, 60))
        if (answer?.granted) granted[answer.store as 'redis' | 'local'] += 1
        else if (answer?.store === 'redis') refused += 1
        await sleep(5)
      }
    })()
    await sleep(150)
    const replica = new Redis(redis.replica.url)
    t.teardown(() => replica.disconnect())
    t.equal(await replica.call('CLUSTER', 'FAILOVER'), 'OK')
    await waitUntil('the replica to be master', async () =>
      /role:master/.test(await replica.info('replication')),
    )
    await waitUntil(
      'Redis counts again',
      async () => (await ask(minute(`${key}:after`, 1000)))[0]?.store === 'redis',
    )
    await waitUntil('all to be spent', () => refused > 0)
    running = false
    await traffic
    const [full] = await ask(minute(`${key}:failover`, 60))
    t.match(full, { granted: false, store: 'redis' }, 'the new master knows what was spent')
    t.ok(granted.redis <= 60, `${granted.redis} of 60, and ${granted.local} counted here meanwhile`)
    await waitUntil('the old master to follow', () => changes.length % 2 === 0)
  })

  t.test('while one node is silent only its keys are counted in process', async t => {
    lines.length = 0
    const [, second, third] = keys
    redis.masters[1]?.pause()
    await waitUntil('its breaker to open', async () => {
      await ask(minute(`${second}:silent`, 1000))
      return lines.length > 0
    })
    const startedAt = performance.now()
    for (let i = 0; i < 20; i += 1) {
      t.match(await ask(minute(`${second}:silent`, 1000)), [{ store: 'local' }])
      t.match(await ask(minute(`${third}:lively`, 1000)), [{ store: 'redis' }])
    }
    t.ok(performance.now() - startedAt < 5000, 'no request waits for the silent node')
    redis.masters[1]?.resume()
    await waitUntil(
      'it is back',
      async () => (await ask(minute(`${second}:silent`, 1000)))[0]?.store === 'redis',
    )
    const states = lines.filter(({ msg }) => !msg.startsWith('Redis answered after'))
    matchList(t, states, [
      { msg: /^Redis is away/, node: `127.0.0.1:${redis.masters[1]?.port}` },
      { msg: /^Redis is back/, node: `127.0.0.1:${redis.masters[1]?.port}` },
    ])
  })
})

t.test('a demoted master is replaced by a new connection, and counts again once it is master', async t => {
  if (redisCommand(t) === undefined) return
  const [master, other] = await Promise.all([startRedis(), startRedis()])
  t.teardown(() => Promise.all([master.stop(), other.stop()]))
  const { ask, changes } = await storeOn(t, master.url)
  const client = new Redis(master.url).on('error', () => {})
  t.teardown(() => client.disconnect())
  const connections = async () =>
    Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1])
  t.match(await ask(minute('{a}', 10)), [{ store: 'redis' }])
  await client.replicaof('127.0.0.1', other.port)
  const before = await connections()
  for (let i = 0; i < 4; i += 1) t.match(await ask(minute('{a}', 10)), [{ granted: true, store: 'local' }])
  await waitUntil('a new connection', async () => (await connections()) > before)
  await client.replicaof('NO', 'ONE')
  await waitUntil(
    'the master to count again',
    async () => (await ask(minute('{b}', 10)))[0]?.store === 'redis',
  )
  t.strictSame(changes, [true, false])
})

t.test(
  'a store behind a Sentinel finds the master, and the new one after a failover',
  { buffered: true },
  async t => {
    if (redisCommand(t) === undefined) return
    const [master, replica] = await Promise.all([startRedis(), startRedis()])
    const replicaClient = new Redis(replica.url).on('error', () => {})
    await replicaClient.replicaof('127.0.0.1', master.port)
    await waitUntil('the replica to be in sync', async () =>
      /master_link_status:up/.test(await replicaClient.info('replication')),
    )
    const sentinel = await startSentinel(master)
    t.teardown(async () => {
      replicaClient.disconnect()
      await Promise.all([sentinel.stop(), master.stop(), replica.stop()])
    })
    const watch = new Redis(sentinel.url)
    t.teardown(() => watch.disconnect())
    await waitUntil('the Sentinel to know the replica', async () => {
      const replicas = (await watch.call('SENTINEL', 'REPLICAS', 'main')) as string[][]
      return replicas.some(fields => fields.includes('ok') || fields.includes('slave'))
    })
    const { ask } = await storeOn(t, `redis+sentinel://127.0.0.1:${sentinel.port}/main`)
    for (let i = 0; i < 3; i += 1) t.match(await ask(minute('{s}', 5)), [{ granted: true, store: 'redis' }])
    const masterClient = new Redis(master.url).on('error', () => {})
    t.teardown(() => masterClient.disconnect())
    const offsetOf = async (redis: Redis) =>
      Number(/(?:^|\n)master_repl_offset:(\d+)/.exec(await redis.info('replication'))?.[1])
    const spent = await offsetOf(masterClient)
    await waitUntil('the replica to know it', async () => (await offsetOf(replicaClient)) >= spent)
    await waitUntil('the failover to begin', () => watch.call('SENTINEL', 'FAILOVER', 'main'))
    await waitUntil('the replica to be master', async () =>
      /role:master/.test(await replicaClient.info('replication')),
    )
    await waitUntil('the new master counts', async () => {
      const [answer] = await ask(minute('{other}', 1000))
      return answer?.store === 'redis' && (await replicaClient.exists('{other}')) === 1
    })
    const [answer] = await ask(minute('{s}', 5))
    t.match(answer, { store: 'redis', counts: [{ used: 4 }] }, 'the new master knows what was spent')
  },
)
