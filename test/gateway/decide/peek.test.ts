/** Looking at counters: `peek` says what `take` would say, and changes nothing. */
import fc from 'fast-check'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { LeasedStore } from '../../../gateway/decide/leases/leased-store.js'
import { RedisLeaseClient } from '../../../gateway/decide/leases/redis-lease-client.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Answer, Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import type { Algorithm } from '../../../gateway/types.js'
import { redisUrl } from '../../helpers/redis.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const START = 1_700_000_000_000

interface Bench {
  readonly store: CounterStore
  at: number
  /** Everything that is stored, in a comparable form. */
  state(): Promise<unknown>
}

async function inProcess(t: Test): Promise<Bench> {
  const clock = { at: START }
  // A twin that is never peeked at and gives the expected answers.
  const twin = new MemoryStore(() => clock.at)
  const own = new MemoryStore(() => clock.at)
  const store: CounterStore = {
    take(asks) {
      const [answers, expected] = [own.take(asks), twin.take(asks)]
      t.same(answers.map(told), expected.map(told))
      return answers.map((answer, i) => {
        if (!answer.granted) return answer
        const release = () => {
          answer.release?.()
          expected[i]?.release?.()
        }
        return { ...answer, release }
      })
    },
    rides: () => own.rides(),
    peek: asks => own.peek(asks),
    giveBack: (asks, answers) => own.giveBack(asks, answers),
    charge: charges => own.charge(charges),
    close: () => own.close(),
  }
  return Object.assign(clock, { store, state: async () => 'told by the twin' })
}

async function onRedis(t: Test): Promise<Bench | undefined> {
  const url = await redisUrl(t)
  if (url === undefined) return undefined
  const clock = { at: START }
  const store = new RedisStore({ url, log: quiet, clock: () => Math.round(clock.at * 1000) })
  const redis = new Redis(url)
  t.teardown(async () => {
    redis.disconnect()
    await store.close()
  })
  await store.answers(5000)
  return Object.assign(clock, { store, state: () => stateOf(redis) })
}

/** Every key with its raw value. */
async function stateOf(redis: Redis): Promise<Record<string, string>> {
  const keys = (await redis.keys('*')).sort()
  const dumps = await Promise.all(keys.map(key => redis.dumpBuffer(key)))
  return Object.fromEntries(keys.map((key, i) => [key, dumps[i]?.toString('hex') ?? 'gone']))
}

/** An answer without what only `take` adds. */
function told({ granted, unavailable, store, counts }: Answer): object {
  return { granted, unavailable, store, counts }
}

const ASKED = ['bucket', 'slot', 'meter', 'observed', 'observedSlot', 'observedMeter']
let rounds = 0
function asksOf(algorithm: Algorithm): Record<string, Ask> {
  rounds += 1
  const ask = (name: string, group: number, demand: Ask['demand']): Ask => {
    return { key: `test:{peek${rounds}}:${name}`, demand, group, onStoreError: 'local' }
  }
  const window = (quota: number, ms: number) => ({ name: 'w', quota, ms, algorithm })
  return {
    bucket: ask('bucket', 0, {
      kind: 'windows',
      windows: [window(3, 1000), window(7, 60_000)],
      lease: false,
    }),
    slot: ask('slot', 0, { kind: 'slots', max: 2, ttlMs: 3000 }),
    meter: ask('meter', 0, { kind: 'meter', quota: 5, ms: 2000, blockMs: 3000, cost: 2 }),
    observed: ask('observed', 1, { kind: 'windows', windows: [window(2, 10_000)], lease: false }),
    observedMeter: ask('observed-meter', 3, { kind: 'meter', quota: 2, ms: 4000, blockMs: 0 }),
    observedSlot: ask('observed-slot', 2, { kind: 'slots', max: 1, ttlMs: 3000 }),
  }
}

for (const [name, open] of [
  ['in process', inProcess],
  ['on Redis', onRedis],
] as const) {
  t.test(`${name}, peeking tells what taking would tell, and changes no byte`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const step = fc.record({
      ms: fc.integer({ min: 0, max: 1500 }),
      asked: fc.subarray(ASKED, { minLength: 1 }),
      release: fc.boolean(),
    })
    const algorithms = fc.constantFrom<Algorithm>('sliding-window', 'fixed-window', 'token-bucket')
    const steps = fc.array(step, { minLength: 3, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(algorithms, steps, async (algorithm, steps) => {
        const all = asksOf(algorithm)
        for (const [i, { ms, asked, release }] of steps.entries()) {
          bench.at += ms
          const asks = asked.map(one => all[one] as Ask)
          const before = await bench.state()
          const seen = await bench.store.peek(asks)
          t.same(await bench.state(), before)
          t.notOk(seen.some(answer => answer.release !== undefined))
          const taken = await bench.store.take(asks, `holder-${rounds}-${i}`)
          t.same(seen.map(told), taken.map(told))
          if (release) for (const answer of taken) answer.release?.()
        }
      }),
      { numRuns: 12, seed: 7 },
    )
  })
}

/** One gateway that leases from a real Redis, in virtual time; undefined when no Redis is available. */
async function leasing(t: Test) {
  const url = await redisUrl(t)
  if (url === undefined) return undefined
  const clock = { at: START }
  const redis = new Redis(url)
  const us = () => Math.round(clock.at * 1000)
  const remote = new RedisStore({ url, log: quiet, clock: us })
  const lender = new RedisLeaseClient(remote.connection, us)
  const behind = Object.assign(remote, { countLocally: () => [] })
  const store = new LeasedStore(behind, lender, () => clock.at)
  t.teardown(async () => {
    await store.close()
    redis.disconnect()
  })
  await remote.answers(5000)
  return Object.assign(clock, { store, redis })
}

t.test('peeking counts leased tokens, and touches neither them nor Redis', async t => {
  const bench = await leasing(t)
  if (bench === undefined) return
  const { store, redis } = bench
  const windows = [{ name: 'w', quota: 100, ms: 60_000, algorithm: 'sliding-window' }] as const
  const ask: Ask = {
    key: 'test:{lent}',
    demand: { kind: 'windows', windows, lease: true },
    group: 0,
    onStoreError: 'local',
  }
  for (let i = 0; i < 5; i += 1) await store.take([ask], 'holder')
  const before = await stateOf(redis)
  const [seen] = await store.peek([ask])
  const [again] = await store.peek([ask])
  t.same(seen, again)
  t.match(seen, { granted: true, store: 'lease', counts: [{ used: 6 }] })
  t.same(await stateOf(redis), before)
  const [taken] = await store.take([ask], 'holder')
  t.match(taken, { granted: true, store: 'lease', counts: [{ used: 6 }] })
})

t.test('peeking tells what taking would tell when the leased tokens are too few for the cost', async t => {
  const bench = await leasing(t)
  if (bench === undefined) return
  const { store } = bench
  const step = fc.record({ ms: fc.nat({ max: 900 }), cost: fc.integer({ min: 1, max: 5 }) })
  const quotas = fc.record({ quota: fc.integer({ min: 5, max: 30 }), ms: fc.constantFrom(1000, 60_000) })
  let returned = 0
  await fc.assert(
    fc.asyncProperty(quotas, fc.array(step, { minLength: 5, maxLength: 20 }), async (limit, steps) => {
      rounds += 1
      const windows = [{ name: 'w', algorithm: 'sliding-window', ...limit }] as const
      const demands = [1, 2, 3, 4, 5].map(cost => ({ kind: 'windows', windows, lease: true, cost }) as const)
      for (const { ms, cost } of steps) {
        bench.at += ms
        const demand = demands[cost - 1] as Ask['demand']
        const ask: Ask = { key: `test:{lent${rounds}}`, demand, group: 0, onStoreError: 'local' }
        // Otherwise the store's own sweep may renew the lease between the two calls.
        await store.peek([ask])
        store.sweep()
        const [seen] = (await store.peek([ask])) as [Answer]
        const [taken] = (await store.take([ask], 'holder')) as [Answer]
        const told = ({ granted, store, counts }: Answer) => {
          return { granted, store, counts: counts.map(({ used, left, violated }) => [used, left, violated]) }
        }
        t.same(told(seen), told(taken))
        if (taken.granted && taken.store === 'redis') returned += 1
      }
    }),
    { numRuns: 25, seed: 26 },
  )
  t.ok(returned > 0)
})

for (const [name, open] of [
  ['in process', inProcess],
  ['on Redis', onRedis],
] as const) {
  t.test(`${name}, peeking at a meter blocks nobody, and tells who is blocked`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const demand = { kind: 'meter', quota: 2, ms: 60_000, blockMs: 300_000 } as const
    const ask: Ask = { key: `test:{source-${name}}`, demand, group: 0, onStoreError: 'local' }
    const look = async () => (await bench.store.peek([ask])).map(told)
    const take = async () => (await bench.store.take([ask], '')).map(told)
    const free = { granted: true, counts: [{ used: 1, left: 1, resetMs: 60_000 }] }
    for (let i = 0; i < 5; i += 1) t.match(await look(), [free], 'the client has not asked before')
    await take()
    await take()
    const refused = { granted: false, counts: [{ used: 3, left: 0, violated: true, resetMs: 300_000 }] }
    for (let i = 0; i < 5; i += 1) t.match(await look(), [refused], 'the next request would be blocked')
    t.match(await take(), [refused])
  })
}
