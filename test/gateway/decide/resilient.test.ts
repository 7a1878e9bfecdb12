/**
 * A counter store whose Redis is unreachable, silent or slow: each rule's fallback applies, and it recovers by itself.
 */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { Backlog } from '../../../gateway/decide/fallback/backlog.js'
import { FallbackStore } from '../../../gateway/decide/fallback/fallback-store.js'
import { Guard } from '../../../gateway/decide/fallback/guard.js'
import { LastAnswers } from '../../../gateway/decide/fallback/last-answers.js'
import { Refunds } from '../../../gateway/decide/fallback/refunds.js'
import { hashSlot, hashTag } from '../../../gateway/decide/redis/hash-slot.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { openStore } from '../../../gateway/decide/store/open.js'
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
  const lastAnswers = new LastAnswers(() => performance.now())
  const debts = new Backlog(() => performance.now())
  const store = new FallbackStore({
    remote,
    guard,
    local,
    instances,
    lastAnswers,
    backlog: debts,
    refunds: new Refunds(),
    onLate,
  })
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

t.test(
  'while Redis is away requests are counted by their cost, and Redis is charged the same later',
  async t => {
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
    await waitUntil(
      'Redis counts again',
      async () => (await here.ask(minute('{b}', 10)))[0]?.store === 'redis',
    )
    await here.ask(minute('{a}', 20))
    const [answer] = await here.ask(minute('{a}', 20))
    t.match(answer, { granted: false, store: 'redis', counts: [{ used: 20 }] })
  },
)

t.test('a quota that changes while Redis goes away keeps what was spent, window by window', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const windows = (...quotas: [name: string, quota: number][]): Ask => ({
    ...minute('{a}', 0),
    demand: {
      kind: 'windows',
      lease: false,
      windows: quotas.map(([name, quota]) => ({ name, quota, ms: 60_000, algorithm: 'sliding-window' })),
    },
  })
  const admitted = async (ask: Ask) => {
    let count = 0
    while (count < 100 && (await here.ask(ask))[0]?.granted) count += 1
    return count
  }
  t.equal(await admitted(windows(['sustained', 8])), 8)
  here.redis.pause()
  t.equal(await admitted(windows(['sustained', 10])), 2, 'two more, not ten')
  t.equal(await admitted(windows(['burst', 3], ['sustained', 20])), 3, 'the new window is empty')
  t.equal(await admitted(windows(['sustained', 20], ['burst', 9])), 6, 'each is known by its name')
  t.equal(await admitted(windows(['sustained', 5])), 0)
})

t.test('a silent Redis delays a request by the deadline at most, and soon not at all', async t => {
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
  'a Redis that was killed and restarts empty is used again without a restart of the gateway',
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
  'while Redis is away local counts this instance’s share, open admits uncounted, closed refuses',
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
      'a refused group consumes nothing',
    )
  },
)

t.test('while Redis is away this instance admits its share of what Redis last said was left', async t => {
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
  t.match(await here.ask(minute('{spent}', 20)), [{ granted: true }], 'another quota starts anew')
})

t.test('a call that was too late is charged once, for what was admitted meanwhile', async t => {
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

t.test('a closed report-only rule changes nothing for enforced rules while Redis is away', async t => {
  const here = await bench(t)
  if (here === undefined) return
  await here.redis.kill()
  t.match(await here.ask(minute('{e}', 10), minute('{r}', 10, 'closed', 1)), [
    { granted: true, unavailable: false },
    { granted: false, unavailable: true },
  ])
})

t.test('a slot granted by a Redis answer after the deadline is given back', async t => {
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
})

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
    const observed = ['sluice:1:{acme}:r:k:e', 'sluice:1:*:{k:ro:9:192.0.2.1}:r', 'sluice:1:*:{k:ro:2:a}}:r']
    for (const key of observed) for (let i = 0; i < 3; i++) await guard.within('take', key, fail)
    t.strictSame(changes, [], 'the failures of report-only calls do not open the breaker')
    const enforced = ['sluice:1:{acme}:e:k:r', 'sluice:1:*:{k:r:9:192.0.2.1}:e', 'sluice:1:{acme}:e:k:r:1:x']
    for (const key of enforced) {
      t.strictSame(changes, [])
      await guard.within('take', key, fail)
      await guard.within('take', observed[0] as string, async () => 'fine')
    }
    t.strictSame(changes, [true], 'the successes of report-only calls do not hide three failures in a row')
    const before = asked
    t.equal(await guard.within('take', observed[1] as string, fail), undefined)
    t.equal(asked, before, 'while Redis is away report-only calls are not made')
  },
)

t.test('before any request, the node that is checked is the one that is called away', async t => {
  let topology: 'unknown' | 'known' = 'unknown'
  const nodeOf = (key: string) => (topology === 'known' ? `node of slot ${hashSlot(key)}` : '')
  const pinged = new Set<string>()
  const changes: string[] = []
  const guard = new Guard({
    deadlineMs: 1000,
    nodeOf,
    ping: async key => {
      pinged.add(key)
      if (topology === 'known') throw new Error('away')
    },
    onFailure() {},
    onChange: ({ node }) => changes.push(node),
  })
  t.teardown(() => guard.close())
  guard.suspect()
  await waitUntil('it to be checked', () => pinged.size > 0)
  topology = 'known'
  guard.suspect()
  await waitUntil('it to be away', () => changes.length > 0)
  t.equal(pinged.size, 1)
  const [key = ''] = pinged
  t.ok(hashTag(key), 'which Redis probes in the slot of the key')
  t.strictSame(changes, [nodeOf(key)])
})

t.test('a call that fails is told by the name of its operation', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const ops: string[] = []
  const hooks = { failed: (op: string) => void ops.push(op), late() {}, awayChanged() {} }
  const settings = { redis: redis.url, deadline: DEADLINE_MS, instances: 1, onError: 'local' } as const
  const { store } = await openStore(settings, quiet, hooks)
  t.teardown(() => store.close())
  const asked = minute('{a}', 10)
  t.match(await store.take([asked], 'holder'), [{ store: 'redis' }])
  ops.length = 0
  redis.pause()
  await store.take([asked], 'holder')
  await store.peek([asked])
  await store.take([{ ...asked, demand: { ...asked.demand, lease: true } as Ask['demand'] }], 'holder')
  t.strictSame(ops, ['take', 'peek', 'lease'])
  redis.resume()
  await waitUntil('it is back', async () => (await store.take([asked], 'holder'))[0]?.store === 'redis')
  ops.length = 0
  await redis.kill()
  await waitUntil('it to be checked', () => ops.length > 0)
  t.equal(ops[0], 'ping')
})

t.test('an unreadable report-only counter does not affect enforced rules', async t => {
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

t.test('a Redis that responds but cannot count is treated as away until it counts', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const client = new Redis(here.redis.url)
  t.teardown(() => client.disconnect())
  await client.config('SET', 'maxmemory', '1')
  for (let i = 0; i < 5; i++) t.equal((await here.ask(minute('{a}', 10)))[0]?.store, 'local')
  await sleep(1000)
  t.strictSame(here.changes, [true], 'the state does not change back and forth')
  await client.config('SET', 'maxmemory', '0')
  await waitUntil('Redis counts again', async () => (await here.ask(minute('{a}', 10)))[0]?.store === 'redis')
})

t.test('slots are renewed while held, and those of a dead holder expire within their TTL', async t => {
  const here = await bench(t)
  if (here === undefined) return
  const slot = slotOf('{s}', 1, { onStoreError: 'closed', ttlMs: 2500 })
  const holder = new RedisStore({ url: here.redis.url, log: quiet })
  await holder.answers(5000)
  t.match(await holder.take([slot], 'first'), [{ granted: true }])
  await sleep(4000)
  t.match(await here.ask(slot), [{ granted: false }], 'the slot is held past its TTL because it is renewed')
  await holder.close()
  const diedAt = performance.now()
  await waitUntil('the slot comes back', async () => (await here.ask(slot))[0]?.granted)
  t.ok(performance.now() - diedAt < 2 * 2500, 'the slot is free when its TTL ends')
})

t.test('slots held in Redis still count in process while Redis is away', async t => {
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
  t.equal(third?.granted, true, 'a released slot is available again')
  second?.release?.()
  third?.release?.()
  t.match(await here.ask(slotOf('{s}', 1)), [{ granted: true }])
})

t.test('a slot whose grant was lost on the way is freed once Redis is back', async t => {
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
  const lastAnswers = new LastAnswers(() => performance.now())
  const debts = new Backlog(() => performance.now())
  const store = new FallbackStore({
    refunds: new Refunds(),
    remote,
    guard,
    local,
    instances: 1,
    lastAnswers,
    backlog: debts,
    onLate() {},
  })
  t.teardown(async () => {
    await store.close()
    await proxy.stop()
  })
  await remote.answers(5000)
  await store.take([slotOf('{warm}', 2)], 'other')
  await proxy.set({ kind: 'slow', bytes: 1, ms: 5000 })
  const taken = store.take([asked], 'nobody')
  await waitUntil('the slot to be taken', async () => (await client.zcard('{lost}')) === 1)
  await proxy.set({ kind: 'refuse' })
  t.match(await taken, [{ store: 'local' }])
  t.equal(await client.zcard('{lost}'), 1)
  await proxy.set({ kind: 'pass' })
  await waitUntil('the slot to be free', async () => (await client.zcard('{lost}')) === 0)
})
