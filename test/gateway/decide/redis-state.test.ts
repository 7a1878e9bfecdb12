/** What counters in Redis cost and survive: shared calls, small state, flushed scripts, lost TTLs, clocks set back. */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { Backlog } from '../../../gateway/decide/fallback/backlog.js'
import { FallbackStore } from '../../../gateway/decide/fallback/fallback-store.js'
import { Guard } from '../../../gateway/decide/fallback/guard.js'
import { LastAnswers } from '../../../gateway/decide/fallback/last-answers.js'
import { Refunds } from '../../../gateway/decide/fallback/refunds.js'
import { ClusterStore } from '../../../gateway/decide/redis/cluster-store.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import type { Demand, Window } from '../../../gateway/demand.js'
import type { Algorithm } from '../../../gateway/types.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

function windowsOf(burst: number, sustained: number, algorithm: Algorithm = 'sliding-window'): Demand {
  const windows: Window[] = [
    { name: 'burst', quota: burst, ms: 1000, algorithm },
    { name: 'sustained', quota: sustained, ms: 60_000, algorithm },
  ]
  return { kind: 'windows', windows, lease: false }
}
function ask(key: string, demand: Demand, group = 0): Ask {
  return { key, demand, group, onStoreError: 'closed' }
}

/** A gateway's store on the Redis at `url`; `clock`, when given, sets its time in ms. */
async function storeOn(t: Test, url: string, clock?: { at: number }) {
  const time = clock && (() => Math.round(clock.at * 1000))
  const remote = new RedisStore({ url, log: quiet, ...(time && { clock: time }) })
  await remote.answers(5000)
  let failures = 0
  const guard = new Guard({
    deadlineMs: 5000,
    nodeOf: () => '',
    ping: key => remote.ping(key),
    onFailure: () => {
      failures += 1
    },
    onChange: () => {},
  })
  const store = new FallbackStore({
    refunds: new Refunds(),
    remote,
    guard,
    local: new MemoryStore(() => 0, 'local'),
    instances: 1,
    lastAnswers: new LastAnswers(() => 0),
    backlog: new Backlog(() => 0),
    onLate() {},
  })
  const client = new Redis(url)
  t.teardown(async () => {
    client.disconnect()
    await store.close()
  })
  return {
    store,
    remote,
    client,
    take: async (...asks: Ask[]): Promise<Answer[]> => store.take(asks, 'holder'),
    failures: () => failures,
  }
}

t.test('equal requests of one turn share one script call, and each gets its own count', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { take, client } = await storeOn(t, url)
  const demand = windowsOf(1000, 50)
  const watched = windowsOf(1000, 20)
  await client.config('RESETSTAT')
  const asks = [ask('{a}:e', demand), ask('{a}:r', watched, 1)]
  const both = await Promise.all(Array.from({ length: 400 }, () => take(...asks)))
  const alone = await Promise.all(Array.from({ length: 3 }, () => take(ask('{a}:e', demand))))
  const others = await Promise.all(['{b}', '{c}', '{d}'].map(key => take(ask(key, demand))))
  const scripts = await client.info('commandstats')
  const calls = [...scripts.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  )
  t.equal(calls, 1 + 1 + 3)

  const numbersOf = (answers: Answer[]) =>
    answers.filter(({ granted }) => granted).map(({ counts }) => counts[1]?.used)
  const upTo = (highest: number) => Array.from({ length: highest }, (_, i) => i + 1)
  t.strictSame(
    numbersOf(both.map(([enforced]) => enforced as Answer)),
    upTo(50),
    'each request has its own number',
  )
  t.strictSame(
    numbersOf(both.map(([, watched]) => watched as Answer)),
    upTo(20),
    'groups are judged separately',
  )
  const refused = {
    granted: false,
    counts: [
      { used: 50, violated: false },
      { used: 50, left: 0, violated: true },
    ],
  }
  t.match(both[399]?.[0], refused)
  t.match(alone, [[refused], [refused], [refused]])
  t.match(others, [[{ granted: true }], [{ granted: true }], [{ granted: true }]])
})

t.test('requests with different demands, or for slots, do not share an answer', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { store } = await storeOn(t, url)
  const slots: Demand = { kind: 'slots', max: 3, ttlMs: 15_000 }
  const demands = [windowsOf(1000, 2), windowsOf(1000, 4)]
  const asks = [0, 1, 0, 1, 0, 1].map(which => ask('{k}', demands[which] as Demand))
  asks.push(...Array.from({ length: 5 }, () => ask('{s}', slots)))
  const answers = await Promise.all(asks.map((asked, i) => store.take([asked], `request ${i}`)))
  t.strictSame(
    answers.map(([answer]) => answer?.granted),
    [true, true, true, true, false, false, true, true, true, false, false],
  )
  for (const [answer] of answers) answer?.release?.()
})

t.test('a key takes at most 250 bytes after one request, and about 1 KB at 36000 a minute', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const clock = { at: 1_700_000_000_000 }
  const { remote, client } = await storeOn(t, url, clock)
  for (const algorithm of ['sliding-window', 'fixed-window', 'token-bucket'] as const) {
    const demand = windowsOf(1200, 36_000, algorithm)
    const key = `sluice:1:{customer-project-${algorithm}}:e:project-limits:sessions-whoami`
    await remote.take([ask(key, demand)], '')
    t.ok(Number(await client.memory('USAGE', key)) <= 250, 'after one request')
    let most = 0
    for (let i = 0; i < 3000; i += 1) {
      clock.at += 1 + 60 * Math.random()
      await remote.takeMany([ask(key, demand)], '', 1 + Math.floor(35 * Math.random()))
      if (i % 10 === 0) most = Math.max(most, Number(await client.memory('USAGE', key)))
    }
    t.comment(`${algorithm}: ${most} bytes`)
    t.ok(most <= 1100, `${most} bytes`)
  }
})

t.test('flushed scripts are loaded again without a failure, and counts are kept', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { take, client, failures } = await storeOn(t, redis.url)
  const demand = windowsOf(1000, 300)
  let granted = 0
  for (let i = 0; i < 40; i += 1) {
    if (i % 4 === 0) await client.script('FLUSH')
    const answers = await Promise.all(Array.from({ length: 10 }, () => take(ask('{f}', demand))))
    granted += answers.filter(([answer]) => answer?.granted).length
  }
  t.equal(granted, 300)
  t.equal(failures(), 0)
})

t.test('a Redis that restarts empty counts exactly from then on', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { take } = await storeOn(t, redis.url)
  const asked = ask('{e}', windowsOf(1000, 5))
  const admitted = async () =>
    (await Promise.all(Array.from({ length: 20 }, () => take(asked)))).filter(([answer]) => answer?.granted)
      .length
  t.equal(await admitted(), 5)
  await redis.restart()
  await waitUntil(
    'Redis counts again',
    async () => (await take(ask('{other}', windowsOf(1000, 1000))))[0]?.granted,
  )
  t.equal(await admitted(), 5, 'exactly the quota is admitted again')
})

t.test('a gateway whose policy lacks the last window keeps what others spent in it', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const clock = { at: 1_700_000_000_000 }
  const { take, client } = await storeOn(t, url, clock)
  const older = windowsOf(100, 100) as Demand & { kind: 'windows' }
  for (const algorithm of ['sliding-window', 'fixed-window', 'token-bucket'] as const) {
    const asked = (demand: Demand) => ask(`{further}:${algorithm}`, demand)
    const day: Window = { name: 'day', quota: 5, ms: 86_400_000, algorithm }
    const newer: Demand = { ...older, windows: [...older.windows, day] }
    let admitted = 0
    for (let i = 0; i < 10; i += 1) {
      if ((await take(asked(newer)))[0]?.granted) admitted += 1
      clock.at += 100
      await take(asked(older))
      clock.at += 100
    }
    t.equal(admitted, 5, algorithm)
    clock.at += 10_000
    await take(asked(older))
    clock.at += 86_400_000 - 11_000
    t.equal((await take(asked(newer)))[0]?.granted, true, 'the first returns after a day')
    await client.del(asked(older).key)
  }
})

t.test('a key written by a gateway with fewer windows lives as long as before', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { take, client } = await storeOn(t, url)
  const older = windowsOf(5, 5) as Demand & { kind: 'windows' }
  const day: Window = { name: 'day', quota: 5, ms: 86_400_000, algorithm: 'sliding-window' }
  await take(ask('{long-lived}', { ...older, windows: [...older.windows, day] }))
  await take(ask('{long-lived}', older))
  t.ok((await client.pttl('{long-lived}')) > 86_000_000)
  await client.del('{long-lived}')
})

t.test('a key without an expiry gets a new one within a window, and blocks nobody for longer', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { take, client } = await storeOn(t, url)
  const outlive = async (algorithm: Algorithm) => {
    const key = `{persisted}:${algorithm}`
    const demand: Demand = {
      kind: 'windows',
      windows: [{ name: 'burst', quota: 2, ms: 2000, algorithm }],
      lease: false,
    }
    for (let i = 0; i < 3; i += 1) await take(ask(key, demand))
    await client.persist(key)
    t.equal((await take(ask(key, demand)))[0]?.granted, false)
    await sleep(2010)
    t.equal((await take(ask(key, demand)))[0]?.granted, true)
    const left = await client.pttl(key)
    t.ok(left > 0 && left <= 2010, `${algorithm}: ${left} ms`)
  }
  await Promise.all((['sliding-window', 'fixed-window', 'token-bucket'] as const).map(outlive))
})

t.test('a Redis clock that was set back refuses for at most one window', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const clock = { at: 1_700_000_000_000 }
  const { remote } = await storeOn(t, url, clock)
  for (const algorithm of ['sliding-window', 'fixed-window', 'token-bucket'] as const) {
    const asked = ask(`{back}:${algorithm}`, windowsOf(10, 20, algorithm))
    await remote.takeMany([asked], '', 20)
    clock.at -= 3_600_000
    const granted = async () => (await remote.takeMany([asked], '', 1))[0]?.[0]?.granted
    await granted()
    clock.at += 61_200
    t.equal(await granted(), true, algorithm)
  }
})

t.test('a reservation that is never confirmed is returned, and starts no block', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const clock = { at: 1_700_000_000_000 }
  const here = await storeOn(t, url, clock)
  const demand: Demand = { kind: 'meter', quota: 3, ms: 30_000, blockMs: 60_000 }
  const plain = ask('sluice:1:*:{died}:e', demand)
  const reserving = { ...plain, reserves: true }
  t.match(await here.take(plain), [{ granted: true }], 'one request is admitted')
  for (let i = 0; i < 2; i += 1) t.match(await here.take(reserving), [{ granted: true }])
  t.match(
    await here.take(plain),
    [{ granted: false, counts: [{ used: 3 }] }],
    'the reservations count while their gateway may be alive',
  )
  clock.at += 10_001
  t.match(
    await here.take(plain),
    [{ granted: true, counts: [{ used: 2 }] }],
    'the reservations are returned when they expire',
  )
  t.match(await here.take(plain), [{ granted: true, counts: [{ used: 3 }] }])
  t.match(await here.take(plain), [{ granted: false }], 'the quota is now exceeded')
})

t.test(
  'on a Cluster, requests of one turn that reserve and that do not are all counted for good',
  async t => {
    const url = await redisUrl(t)
    if (url === undefined) return
    const clock = { at: 1_700_000_000_000 }
    const { store, take } = await storeOn(t, url, clock)
    const split = new ClusterStore(store)
    const address = ask('sluice:1:*:{address}:e', { kind: 'meter', quota: 10, ms: 60_000, blockMs: 0 })
    const project = ask('sluice:1:{acme}:e', windowsOf(10, 10))
    await Promise.all([split.take([address, project], 'both'), split.take([address], 'one')])
    clock.at += 10_001
    t.match(await take(address), [{ granted: true, counts: [{ used: 3 }] }])
  },
)

t.test('on a Cluster, a refusal tells what all limits say, and charges none', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { store, take } = await storeOn(t, url, { at: 1_700_000_000_000 })
  const split = new ClusterStore(store)
  const address = ask('sluice:1:*:{full-address}:e', { kind: 'meter', quota: 1, ms: 5000, blockMs: 0 })
  const project = ask('sluice:1:{full}:e', windowsOf(10, 2))
  await take(address)
  await take(project)
  const both = () => split.take([address, project], 'holder')
  t.match(await both(), [
    { granted: false, counts: [{ violated: true, resetMs: 5000 }] },
    { granted: false, counts: [{ left: 9, violated: false }, { left: 1 }] },
  ])
  await take(project)
  t.match(await both(), [
    { granted: false, counts: [{ violated: true, resetMs: 5000 }] },
    { granted: false, counts: [{ left: 8 }, { left: 0, violated: true, resetMs: 60_000 }] },
  ])
})
