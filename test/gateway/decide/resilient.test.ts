/**
 * A counter store whose Redis is unreachable, silent or slow: each rule's fallback applies, and it recovers by itself.
 */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { Debts } from '../../../gateway/decide/store/debts.js'
import { Guard } from '../../../gateway/decide/store/guard.js'
import { LastTold } from '../../../gateway/decide/store/last-told.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { RedisStore } from '../../../gateway/decide/store/redis.js'
import { ResilientStore } from '../../../gateway/decide/store/resilient.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import type { OnStoreError } from '../../../gateway/types.js'
import { faultProxy } from '../../helpers/faults.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { endsWithin, sleep, waitUntil } from '../../helpers/wait.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
/** Long enough for a Redis that responds, on a machine that is busy with other tests. */
const DEADLINE_MS = 200

async function bench(t: Test, instances = 1) {
  if (redisCommand(t) === undefined) return undefined
  const redis = await startRedis()
  const changes: boolean[] = []
  let failures = 0
  const remote = new RedisStore({ url: redis.url, log: quiet })
  const guard = new Guard({
    deadlineMs: DEADLINE_MS,
    nodeOf: () => '',
    ping: key => remote.ping(key),
    onFailure: () => {
      failures += 1
    },
    onChange: ({ away }) => changes.push(away),
  })
  const local = new MemoryStore(
    () => performance.now(),
    'local',
    key => remote.slotsHeld(key),
  )
  let late = 0
  const onLate = () => {
    late += 1
  }
  const lastTold = new LastTold(() => performance.now())
  const debts = new Debts(() => performance.now())
  const store = new ResilientStore({ remote, guard, local, instances, lastTold, debts, onLate })
  t.teardown(async () => {
    await store.close()
    await redis.stop()
  })
  await remote.answers(5000)
  const ask = async (...asks: Ask[]): Promise<Answer[]> => store.take(asks, 'holder')
  return { redis, store, ask, changes, failures: () => failures, late: () => late }
}

function minute(key: string, quota: number, onStoreError: OnStoreError = 'local', group = 0): Ask {
  const windows = [{ name: 'sustained', quota, ms: 60_000, algorithm: 'sliding-window' }] as const
  return { key, demand: { kind: 'windows', windows, lease: false }, group, onStoreError }
}

interface SlotChanges {
  readonly ttlMs?: number
  readonly onStoreError?: OnStoreError
}

function slotOf(key: string, max: number, { ttlMs = 15_000, onStoreError = 'local' }: SlotChanges = {}): Ask {
  return { key, demand: { kind: 'slots', max, ttlMs }, group: 0, onStoreError }
}

t.test('in Redis’s stead requests are counted by their cost, and told to Redis so', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const spend = async (cost: number) => {
    const ask = minute('{a}', 20)
    const [answer] = await here.ask({ ...ask, demand: { ...ask.demand, cost } as Ask['demand'] })
    return [answer?.granted, answer?.store]
  }
  t.strictSame(await spend(6), [true, 'redis'])
  here.redis.pause()
  for (const cost of [6, 6]) t.strictSame(await spend(cost), [true, 'local'])
  t.strictSame(await spend(6), [false, 'local'], 'two are left')
  t.strictSame(await spend(1), [true, 'local'])
  here.redis.resume()
  await waitUntil('Redis counts again', async () => (await here.ask(minute('{b}', 10)))[0]?.store === 'redis')
  await here.ask(minute('{a}', 20))
  const [answer] = await here.ask(minute('{a}', 20))
  t.match(answer, { granted: false, store: 'redis', counts: [{ used: 20 }] })
})

t.test('a silent Redis costs a request no more than the deadline, and soon nothing', async t => {
  const here = await bench(t)
  if (here === undefined) return
  t.equal((await here.ask(minute('{a}', 10)))[0]?.store, 'redis')
  here.redis.pause()
  const waits: number[] = []
  for (let i = 0; i < 9; i++) {
    const startedAt = performance.now()
    const answer = here.ask(minute('{a}', 10))
    t.ok(await endsWithin(1.5 * DEADLINE_MS, answer), 'at its deadline')
    t.match(await answer, [{ granted: true, store: 'local' }])
    waits.push(performance.now() - startedAt)
  }
  t.match(await here.ask(minute('{a}', 10)), [{ granted: false, store: 'local' }], 'one was spent in Redis')
  t.ok(Math.min(...waits.slice(3)) < DEADLINE_MS / 2, 'the open breaker does not wait')
  t.strictSame(here.changes, [true], 'one change of state is reported')

  here.redis.resume()
  await waitUntil('Redis counts again', async () => (await here.ask(minute('{b}', 10)))[0]?.store === 'redis')
  t.strictSame(here.changes, [true, false])
  const [back] = await here.ask(minute('{c}', 10))
  t.match(back, { store: 'redis', counts: [{ used: 1 }] }, 'nothing was queued or sent late')
})

t.test(
  'a Redis that refuses connections and restarts empty is used again without a restart of ours',
  async t => {
    const here = await bench(t)
    if (here === undefined) return
    await here.redis.kill()
    const startedAt = performance.now()
    for (let i = 0; i < 5; i++) t.equal((await here.ask(minute('{a}', 10)))[0]?.store, 'local')
    t.ok(performance.now() - startedAt < 4 * DEADLINE_MS)
    await here.redis.restart()
    await waitUntil(
      'Redis counts again',
      async () => (await here.ask(minute('{a}', 10)))[0]?.store === 'redis',
    )
  },
)

t.test(
  'while Redis is away: local counts this instance’s share, open admits uncounted, closed refuses',
  async t => {
    const here = await bench(t, 2)
    if (here === undefined) return
    await here.redis.kill()
    const local = []
    for (let i = 0; i < 7; i++) local.push((await here.ask(minute('{l}', 10)))[0]?.granted)
    t.strictSame(
      local,
      [true, true, true, true, true, false, false],
      'half of the quota for one of two instances',
    )
    t.match(await here.ask(minute('{o}', 1, 'open'), minute('{l2}', 10)), [
      { granted: true, store: 'none', counts: [{ used: undefined, left: undefined }] },
      { granted: true, store: 'local' },
    ])
    t.match(await here.ask(minute('{c}', 1, 'closed'), minute('{l3}', 10)), [
      { granted: false, unavailable: true },
      { granted: false, unavailable: false },
    ])
    t.match(
      (await here.ask(minute('{l3}', 10)))[0]?.counts,
      [{ used: 1 }],
      'a refused group consumed nothing',
    )
  },
)

t.test('a stand-in begins with what Redis told last: this instance’s share of what was left', async t => {
  const here = await bench(t, 2)
  if (here === undefined) return
  const meter: Ask = {
    ...minute('{m}', 10),
    demand: { kind: 'meter', quota: 10, ms: 60_000, blockMs: 600_000 },
  }
  const asks = [minute('{l}', 10), meter]
  for (const ask of asks) t.match(await here.ask(ask), [{ store: 'redis', counts: [{ used: 1 }] }])
  for (let i = 0; i < 12; i++) await here.ask(minute('{spent}', 10))
  await here.redis.kill()
  for (const ask of asks) {
    const granted = []
    for (let i = 0; i < 6; i++) granted.push((await here.ask(ask))[0]?.granted)
    t.strictSame(granted, [true, true, true, true, false, false], 'half of nine')
  }
  t.match(await here.ask(minute('{spent}', 10)), [{ granted: false, store: 'local' }], 'nothing was left')
  t.match(await here.ask(minute('{spent}', 20)), [{ granted: true }], 'told of another quota')
})

t.test('a call that came too late is charged once: for what was admitted in its stead', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const ask = minute('{late}', 10)
  t.match(await here.ask(ask), [{ store: 'redis', counts: [{ used: 1 }] }])
  here.redis.pause()
  t.match(await here.ask(ask), [{ granted: true, store: 'local' }])
  here.redis.resume()
  await waitUntil('the late answer', () => here.late() > 0)
  await waitUntil('Redis counts again', async () => (await here.ask(minute('{b}', 10)))[0]?.store === 'redis')
  t.match(await here.ask(ask), [{ store: 'redis', counts: [{ used: 3 }] }])
})

t.test('a report-only rule that is closed changes nothing for the enforced ones', async t => {
  const here = await bench(t)
  if (here === undefined) return
  await here.redis.kill()
  t.match(await here.ask(minute('{e}', 10), minute('{r}', 10, 'closed', 1)), [
    { granted: true, unavailable: false },
    { granted: false, unavailable: true },
  ])
})

t.test(
  'a slot of a request that waits longer than the deadline is given back when Redis answers late',
  async t => {
    const here = await bench(t)
    if (here === undefined) return
    const slot = slotOf('{s}', 1, { onStoreError: 'open' })
    here.redis.pause()
    t.match(await here.ask(slot), [{ granted: true, store: 'none' }])
    here.redis.resume()
    await waitUntil('the slot is free again', async () => {
      const [answer] = await here.ask(slot)
      answer?.release?.()
      return answer?.store === 'redis' && answer.granted
    })
  },
)

t.test(
  'calls for report-only rules alone obey the breaker, and neither open it nor keep it closed',
  async t => {
    const changes: boolean[] = []
    let asked = 0
    const guard = new Guard({
      deadlineMs: 1000,
      nodeOf: () => '',
      ping: async () => {
        throw new Error('away')
      },
      onFailure() {},
      onChange: ({ away }) => changes.push(away),
    })
    t.teardown(() => guard.close())
    const fail = async () => {
      asked += 1
      throw new Error('slow')
    }
    const observed = [
      'sluice:1:{acme}:r:k:e',
      'sluice:1:*:{k:ro:9:192.0.2.1}:r',
      'sluice:1:*:{k:ro:2:a}}:r:more',
    ]
    for (const key of observed) for (let i = 0; i < 3; i++) await guard.within(key, fail)
    t.strictSame(changes, [], 'their failures open nothing')
    const enforced = ['sluice:1:{acme}:e:k:r', 'sluice:1:*:{k:r:9:192.0.2.1}:e', 'sluice:1:{acme}:e:k:r:1:x']
    for (const key of enforced) {
      t.strictSame(changes, [])
      await guard.within(key, fail)
      await guard.within(observed[0] as string, async () => 'fine')
    }
    t.strictSame(changes, [true], 'their successes do not hide three failures in a row')
    const before = asked
    t.equal(await guard.within(observed[1] as string, fail), undefined)
    t.equal(asked, before, 'while Redis is away nobody asks it for them')
  },
)

t.test('a report-only counter that cannot be read leaves the enforced ones alone', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const client = new Redis(here.redis.url)
  t.teardown(() => client.disconnect())
  await client.zadd('{r}', 1, 'of another kind')
  t.match(await here.ask(minute('{e}', 10), minute('{r}', 10, 'local', 1)), [
    { granted: true, store: 'redis', counts: [{ used: 1 }] },
    { granted: false, unavailable: true, store: 'none' },
  ])
  t.equal(here.failures(), 0)
})

t.test('a Redis that answers but does not count is away until it counts', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const client = new Redis(here.redis.url)
  t.teardown(() => client.disconnect())
  await client.config('SET', 'maxmemory', '1')
  for (let i = 0; i < 5; i++) t.equal((await here.ask(minute('{a}', 10)))[0]?.store, 'local')
  await sleep(1000)
  t.strictSame(here.changes, [true], 'no going back and forth')
  await client.config('SET', 'maxmemory', '0')
  await waitUntil('Redis counts again', async () => (await here.ask(minute('{a}', 10)))[0]?.store === 'redis')
})

t.test('slots are renewed while held, and a dead holder’s slot comes back within its TTL', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const slot = slotOf('{s}', 1, { onStoreError: 'closed', ttlMs: 2500 })
  const holder = new RedisStore({ url: here.redis.url, log: quiet })
  await holder.answers(5000)
  t.match(await holder.take([slot], 'first'), [{ granted: true }])
  await sleep(4000)
  t.match(await here.ask(slot), [{ granted: false }], 'held past its TTL because it was renewed')
  await holder.close()
  const diedAt = performance.now()
  await waitUntil('the slot comes back', async () => (await here.ask(slot))[0]?.granted)
  t.ok(performance.now() - diedAt < 2 * 2500, 'when its TTL ends')
})

t.test('slots held in Redis count while this process stands in for it', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const asked = slotOf('{s}', 2)
  const [inRedis] = await here.ask(asked)
  t.equal(inRedis?.store, 'redis')
  await here.redis.kill()
  const [second] = await here.ask(asked)
  t.match(second, { granted: true, store: 'local', counts: [{ used: 2, left: 0 }] })
  t.match(await here.ask(asked), [{ granted: false, store: 'local' }])
  inRedis?.release?.()
  const [third] = await here.ask(asked)
  t.equal(third?.granted, true, 'what came back is there')
  second?.release?.()
  third?.release?.()
  t.match(await here.ask(slotOf('{s}', 1)), [{ granted: true }])
})

t.test('a slot whose answer was lost is freed at once when Redis is back', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const client = new Redis(here.redis.url)
  t.teardown(() => client.disconnect())
  const asked = slotOf('{lost}', 1)
  await here.ask(slotOf('{warm}', 1))
  here.redis.pause()
  const [stoodIn] = await here.ask(asked)
  t.equal(stoodIn?.store, 'local')
  stoodIn?.release?.()
  here.redis.resume()
  await waitUntil('the slot to be free', async () => (await client.zcard('{lost}')) === 0)

  const proxy = await faultProxy(here.redis.port)
  const remote = new RedisStore({ url: `redis://127.0.0.1:${proxy.port}`, log: quiet })
  const guard = new Guard({
    deadlineMs: 5000,
    nodeOf: () => '',
    ping: key => remote.ping(key),
    onFailure() {},
    onChange() {},
  })
  const local = new MemoryStore(() => performance.now(), 'local')
  const lastTold = new LastTold(() => performance.now())
  const debts = new Debts(() => performance.now())
  const store = new ResilientStore({ remote, guard, local, instances: 1, lastTold, debts, onLate() {} })
  t.teardown(async () => {
    await store.close()
    await proxy.stop()
  })
  await remote.answers(5000)
  await store.take([slotOf('{warm}', 2)], 'other')
  await proxy.set({ kind: 'slow', bytes: 1, ms: 5000 })
  const taken = store.take([asked], 'nobody')
  await waitUntil('it to be taken', async () => (await client.zcard('{lost}')) === 1)
  await proxy.set({ kind: 'refuse' })
  t.match(await taken, [{ store: 'local' }])
  t.equal(await client.zcard('{lost}'), 1)
  await proxy.set({ kind: 'pass' })
  await waitUntil('it to be free', async () => (await client.zcard('{lost}')) === 0)
})
