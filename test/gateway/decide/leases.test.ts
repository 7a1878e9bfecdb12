/** Leases: tokens taken ahead from a real Redis, in virtual time, by one or many instances. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type Behind, LeasedStore } from '../../../gateway/decide/store/leases.js'
import type { LeaseAnswer, LeaseCall, Lender } from '../../../gateway/decide/store/lender.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { RedisLender } from '../../../gateway/decide/store/redis-lender.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import type { Algorithm, Demand, Window } from '../../../gateway/types.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'

const START = 1_700_000_000_000

interface Bench {
  /** Gateways on one Redis, each with its own purses. */
  readonly instances: readonly LeasedStore[]
  /** Calls to Redis so far. */
  calls: number
  underWay: Promise<unknown>
  at: number
}

async function connect(t: Test): Promise<((instances: number) => Bench) | undefined> {
  const url = await redisUrl(t)
  if (url === undefined) return undefined
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  return count => {
    const bench = {
      calls: 0,
      underWay: Promise.resolve() as Promise<unknown>,
      at: START,
      instances: [] as LeasedStore[],
    }
    for (let i = 0; i < count; i += 1) {
      const inRedis = new RedisLender(redis, () => Math.round(bench.at * 1000))
      const lender: Lender = {
        lease(call: LeaseCall) {
          bench.calls += 1
          const answer = inRedis.lease(call)
          bench.underWay = Promise.all([bench.underWay, answer])
          return answer
        },
      }
      const store = new LeasedStore(
        inProcess(() => bench.at),
        lender,
        () => bench.at,
      )
      t.teardown(() => store.close())
      bench.instances.push(store)
    }
    return bench
  }
}

function inProcess(now: () => number): Behind {
  const store = new MemoryStore(now, 'local')
  return {
    take: (asks, _holder) => store.take(asks),
    standIn: (asks, _holder) => store.take(asks),
    peek: asks => store.peek(asks),
    giveBack: (asks, answers) => store.giveBack(asks, answers),
    close: () => store.close(),
  }
}

let keys = 0
function leased(...windows: Window[]): Ask {
  keys += 1
  const demand: Demand = { kind: 'windows', windows, lease: true }
  return { key: `test:{lease${keys}}`, demand, group: 0, onStoreError: 'local' }
}
function windowOf(quota: number, ms: number, algorithm: Algorithm = 'sliding-window'): Window {
  return { name: 'window', quota, ms, algorithm }
}

/** Asks `count` times at once at one instance; how many were admitted. */
async function knock(bench: Bench, instance: number, ask: Ask, count = 1): Promise<number> {
  const store = bench.instances[instance % bench.instances.length] as LeasedStore
  const answers = await Promise.all(
    Array.from({ length: count }, async () => (await store.take([ask], 'holder'))[0]),
  )
  return answers.filter(answer => answer?.granted).length
}
async function pass(bench: Bench, ms: number): Promise<void> {
  bench.at += ms
  for (const store of bench.instances) store.sweep()
  await bench.underWay
}

/** The most admissions that any interval of the window's length holds. */
function most(admitted: readonly (readonly [number, number])[], windowMs: number): number {
  let highest = 0
  for (const [i, [from]] of admitted.entries()) {
    let sum = 0
    for (const [at, count] of admitted.slice(i)) if (at < from + windowMs) sum += count
    highest = Math.max(highest, sum)
  }
  return highest
}

t.test('no interval of the window’s length ever admits more than the quota (P1)', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const traffic = fc.array(
    fc.record({
      pause: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom(250, 390, 500, 700, 990),
      ),
      /** A stalled event loop sweeps late. */
      sweeps: fc.boolean(),
      instance: fc.nat({ max: 7 }),
      times: fc.integer({ min: 1, max: 40 }),
      atOnce: fc.boolean(),
    }),
    { minLength: 20, maxLength: 60 },
  )
  for (const count of [1, 2, 8]) {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 300 }), traffic, async (quota, knocks) => {
        const bench = open(count)
        const ask = leased(windowOf(quota, 1000), { ...windowOf(quota * 4, 60_000), name: 'long' })
        const admitted: [number, number][] = []
        for (const { pause, sweeps, instance, times, atOnce } of knocks) {
          bench.at += pause
          if (sweeps) await pass(bench, 0)
          let got = atOnce ? await knock(bench, instance, ask, times) : 0
          for (let i = 0; !atOnce && i < times; i += 1) got += await knock(bench, instance, ask)
          admitted.push([bench.at, got])
        }
        if (most(admitted, 1000) > quota || most(admitted, 60_000) > quota * 4) {
          throw new Error(`${most(admitted, 1000)} of ${quota}, ${most(admitted, 60_000)} of ${quota * 4}`)
        }
      }),
      { numRuns: 25 },
    )
  }
  t.pass('with 1, 2 and 8 instances')
})

t.test('a greedy client gets at least 90 % of the quota, over however many instances', async t => {
  const open = await connect(t)
  if (open === undefined) return
  for (const count of [1, 2, 8]) {
    for (const quota of [1, 10, 50, 400]) {
      for (const turn of ['at once', 'moving']) {
        const bench = open(count)
        const ask = leased(windowOf(quota, 1000))
        const windows = 4
        let admitted = 0
        for (let i = 0; i < windows * 50; i += 1) {
          // 'moving': each instance for a while, so that the others sit on what they took ahead.
          const instance = turn === 'moving' ? Math.floor(i / 9) : i
          for (let got = 1; got > 0; admitted += got)
            got = await knock(bench, instance, ask, Math.ceil(quota / 10))
          await pass(bench, 20)
        }
        t.ok(
          admitted >= 0.9 * windows * quota,
          `${count} instances, ${turn}: ${admitted} of ${windows * quota}`,
        )
      }
    }
  }
})

t.test('a client that keeps to 90 % of the quota is never refused', async t => {
  const open = await connect(t)
  if (open === undefined) return
  for (const count of [1, 2, 8]) {
    for (const quota of [20, 100, 400]) {
      const bench = open(count)
      const ask = leased(windowOf(quota, 1000))
      let refused = 0
      for (let i = 0; i < quota * 3; i += 1) {
        refused += 1 - (await knock(bench, i, ask))
        await pass(bench, 1000 / (0.9 * quota))
      }
      t.equal(refused, 0, `${count} instances, quota ${quota}`)
    }
  }
})

t.test('far from the quota Redis hears less than one call in twenty requests', async t => {
  const open = await connect(t)
  if (open === undefined) return
  for (const count of [1, 2, 8]) {
    const bench = open(count)
    const ask = leased(windowOf(100_000, 1000), { ...windowOf(2_000_000, 60_000), name: 'long' })
    const requests = 2000 * count
    for (let i = 0; i < requests; i += 1) {
      t.equal(await knock(bench, i, ask), 1)
      await pass(bench, 2 / count)
    }
    t.ok(bench.calls < requests / 20, `${count} instances: ${bench.calls} calls for ${requests} requests`)
  }
})

t.test('an edit of the quota applies at once and keeps what was spent', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(1)
  const ask = leased(windowOf(1000, 60_000))
  const edited = (quota: number): Ask => ({ ...ask, demand: { ...leased(windowOf(quota, 60_000)).demand } })
  for (let i = 0; i < 100; i += 1) await knock(bench, 0, ask)
  t.equal(await knock(bench, 0, edited(50)), 0, 'lowered: tokens in hand are worth nothing')
  t.equal(await knock(bench, 0, edited(120), 50), 20, 'raised: 100 were spent')
})

t.test('a gateway that has an older, smaller quota still erases nothing of what was spent', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(2)
  const ask = leased(windowOf(1000, 60_000, 'token-bucket'))
  const older: Ask = { ...ask, demand: { ...leased(windowOf(10, 60_000, 'token-bucket')).demand } }
  let got = await knock(bench, 1, older)
  for (let i = 0; i < 20; i += 1) {
    got += await knock(bench, 0, ask, 200)
    got += await knock(bench, 1, older)
    await pass(bench, 100)
  }
  t.ok(got > 900 && got <= 1000 + 2000 * (1000 / 60_000), `${got} admitted in two seconds`)
})

t.test('a lease of an instance that died ends, also by a clock that was set back', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(2)
  const ask = leased(windowOf(20, 1000), windowOf(600, 60_000))
  for (let i = 0; i < 3; i += 1) await knock(bench, 1, ask)
  bench.at -= 3_600_000
  const first = await knock(bench, 0, ask, 30)
  t.ok(first < 20, `${first} while the lease stands`)
  bench.at += 1600
  t.equal(await knock(bench, 0, ask, 30), 20)
})

t.test('tokens that nobody needs go back when their lease ends', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(2)
  const ask = leased(windowOf(100, 1000))
  for (let i = 0; i < 20; i += 1) await knock(bench, 0, ask)
  await pass(bench, 450)
  await pass(bench, 450)
  let got = 0
  for (let i = 0; i < 100; i += 1) got += await knock(bench, 1, ask)
  t.equal(got, 80, 'all that the first did not spend')
})

t.test('what is taken back is there for the next', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(1)
  const [store] = bench.instances as [LeasedStore]
  const ask = leased(windowOf(1000, 60_000))
  const take = async () => (await store.take([ask], 'holder'))[0] as Answer
  while ((await take()).store !== 'lease');
  const before = (await take()).counts[0]?.used
  const answer = await take()
  store.giveBack([ask], [answer])
  t.equal((await take()).counts[0]?.used, (before as number) + 1)
})

t.test('a spending that was reported already is not taken back from another', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(1)
  const [store] = bench.instances as [LeasedStore]
  const ask = leased(windowOf(1000, 1000))
  const take = async () => (await store.take([ask], 'holder'))[0] as Answer
  let admitted = 0
  // Each is given back one request later, when it may have been reported; the other stays.
  for (let i = 0; i < 3000; i += 1) {
    const first = await take()
    await pass(bench, 0.1)
    if ((await take()).granted) admitted += 1
    await pass(bench, i % 40 === 0 ? 2 : 0.1)
    if (first.granted) store.giveBack([ask], [first])
    if (bench.at - START > 990) break
  }
  t.ok(admitted <= 1000, `${admitted} of 1000`)
  await pass(bench, 0)
  t.ok(bench.calls > 5)
})

t.test('a request under an edited quota is not judged by a call made under the old one', async t => {
  const calls: LeaseCall[] = []
  const answers: ((answer: LeaseAnswer) => void)[] = []
  const lender: Lender = {
    lease(call) {
      calls.push(call)
      return new Promise(resolve => answers.push(resolve))
    },
  }
  const store = new LeasedStore(
    inProcess(() => START),
    lender,
    () => START,
  )
  t.teardown(() => store.close())
  const old = leased(windowOf(10, 60_000))
  const raised = { ...old, demand: leased(windowOf(1000, 60_000)).demand }
  const counts = (quota: number, used: number) => [
    { quota, used, left: Math.max(0, quota - used), violated: used >= quota, resetMs: 50_000 },
  ]
  const first = store.take([old], 'a')
  const second = store.take([raised], 'b')
  answers[0]?.({ admitted: 0, ahead: 0, counts: counts(10, 10), askAgainMs: undefined, at: 0 })
  t.equal((await first)[0]?.granted, false)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(calls[1]?.demand, raised.demand, 'it has a call of its own')
  answers[1]?.({ admitted: 1, ahead: 0, counts: counts(1000, 11), askAgainMs: undefined, at: 0 })
  t.equal((await second)[0]?.granted, true)
})

t.test('a slot that is refused costs no leased token', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(1)
  const [store] = bench.instances as [LeasedStore]
  const ask = leased(windowOf(10, 60_000))
  const slot = {
    ...ask,
    key: `${ask.key}:slot`,
    demand: { kind: 'slots', max: 1, ttlMs: 1000 } as unknown as Demand,
  }
  const both = async () => (await store.take([ask, slot], 'holder')) as [Answer, Answer]
  t.same(
    (await both()).map(({ granted }) => granted),
    [true, true],
  )
  for (let i = 0; i < 20; i += 1)
    t.same(
      (await both()).map(({ granted }) => granted),
      [false, false],
    )
  t.equal(await knock(bench, 0, ask, 20), 9)
})

t.test('while nobody lends, the store behind counts', async t => {
  const at = START
  const store = new LeasedStore(
    inProcess(() => at),
    { lease: async () => undefined },
    () => at,
  )
  t.teardown(() => store.close())
  const ask = leased(windowOf(3, 1000))
  const answers = await Promise.all(
    Array.from({ length: 5 }, async () => (await store.take([ask], 'holder'))[0]),
  )
  t.same(
    answers.map(answer => answer?.granted),
    [true, true, true, false, false],
  )
  t.equal(answers[0]?.store, 'local')
})

const POLICY = (lease: boolean) => `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits: [{ for: [{}], quotas: { catch-all: { burst: 100000, sustained: 400, lease: ${lease} } } }]
`

/** Commands that Redis has served of those our scripts are called by. */
async function scriptCalls(redis: Redis): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
}

t.test('over HTTP: two gateways that lease admit the quota and never more, and hardly ask Redis', async t => {
  if (!redisCommand(t)) return
  const server = await startRedis()
  t.teardown(() => server.stop())
  const redis = new Redis(server.url)
  t.teardown(() => redis.disconnect())
  let reached = 0
  const upstream = await startApp(t, (_req, res) => {
    reached += 1
    res.end()
  })
  const settings = `redis: ${server.url}\nstore: { deadline: 2s }`
  const policies = { 'limits.yaml': POLICY(true) }
  const gateways = [
    await testGateway(t, { upstream, settings, policies }),
    await testGateway(t, { upstream, settings, policies }),
  ]
  const before = await scriptCalls(redis)
  const ask = async (i: number) =>
    (await send(`${(gateways[i % 2] as { url: string }).url}/x`, { headers: { host: 'acme.localhost' } }))
      .status
  for (let i = 0; i < 200; i += 1) await ask(i)
  const far = (await scriptCalls(redis)) - before
  t.ok(far < 60, `${far} calls for the first 200 requests, from a cold start`)
  for (let i = 0; i < 30; i += 1) await Promise.all(Array.from({ length: 20 }, (_, j) => ask(i + j)))
  t.ok(reached <= 400, `${reached} of 400`)
  t.ok(reached >= 360, `${reached} of 400`)
})

t.test(
  'a flood of refused requests costs Redis next to nothing, and a raised limit ends it at once',
  async t => {
    if (!redisCommand(t)) return
    const server = await startRedis()
    t.teardown(() => server.stop())
    const redis = new Redis(server.url)
    t.teardown(() => redis.disconnect())
    const upstream = await startApp(t, (_req, res) => res.end())
    const settings = `redis: ${server.url}\nstore: { deadline: 2s }`
    const gateway = await testGateway(t, { upstream, settings, policies: { 'limits.yaml': POLICY(false) } })
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
    writeFileSync(join(gateway.folder, 'policies', 'limits.yaml'), POLICY(false).replace('400', '500'))
    await gateway.reloader.reload('admin')
    t.equal(await ask(), 200)
  },
)
