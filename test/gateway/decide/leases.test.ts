/** Leases: tokens reserved in a real Redis, with changed rules, given back and expired, in virtual time. */
import t from 'tap'
import type { LeaseAnswer, LeaseCall, LeaseClient } from '../../../gateway/decide/leases/lease-client.js'
import { LeasedStore } from '../../../gateway/decide/leases/leased-store.js'
import { RedisLeaseClient } from '../../../gateway/decide/leases/redis-lease-client.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import type { Demand } from '../../../gateway/demand.js'
import { redisUrl } from '../../helpers/redis.js'
import { START } from './admissions.js'
import { windowOf } from './counting.js'
import { connect, inProcess, knock, leased, pass } from './leasing.js'

t.test('an edited quota applies at once and keeps what was spent', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(1)
  const ask = leased(windowOf(1000, 60_000))
  const edited = (quota: number): Ask => ({ ...ask, demand: { ...leased(windowOf(quota, 60_000)).demand } })
  for (let i = 0; i < 100; i += 1) await knock(bench, 0, ask)
  t.equal(await knock(bench, 0, edited(50)), 0, 'a lowered quota makes leased tokens worthless')
  t.equal(await knock(bench, 0, edited(120), 50), 20, 'a raised quota counts the 100 that were spent')
})

t.test('a gateway with an older, smaller quota erases nothing that was spent', async t => {
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

t.test('the lease of a dead instance expires even when the clock was set back', async t => {
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

t.test('unused tokens return to Redis when their lease ends', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(2)
  const ask = leased(windowOf(100, 1000))
  for (let i = 0; i < 20; i += 1) await knock(bench, 0, ask)
  await pass(bench, 450)
  await pass(bench, 450)
  let got = 0
  for (let i = 0; i < 100; i += 1) got += await knock(bench, 1, ask)
  t.equal(got, 80, 'everything the first instance did not spend is available')
})

t.test('a short lease ends in time, though a longer one was taken before it', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(2)
  await knock(bench, 0, leased(windowOf(1000, 60_000)))
  const ask = leased(windowOf(100, 1000))
  for (let i = 0; i < 20; i += 1) await knock(bench, 0, ask)
  await pass(bench, 450)
  await pass(bench, 450)
  let got = 0
  for (let i = 0; i < 100; i += 1) got += await knock(bench, 1, ask)
  t.equal(got, 80, 'all that the first did not spend')
})

t.test('a charge that is given back is available again', async t => {
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

t.test('a charge that was already reported is given back in Redis', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  let at = START
  const clock = () => Math.round(at * 1000)
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const inRedis = new RedisStore({ url, log, clock })
  t.teardown(() => inRedis.close())
  await inRedis.answers(5000)
  const lender = new RedisLeaseClient(inRedis.connection, clock)
  const now = () => at
  const inner = { ...inProcess(now), giveBack: inRedis.giveBack.bind(inRedis) }
  const store = new LeasedStore(inner, lender, now)
  t.teardown(() => store.close())
  const ask = leased(windowOf(1000, 60_000))
  const take = async () => (await store.take([ask], 'holder'))[0] as Answer
  const used = async () => (await inRedis.peek([ask]))[0]?.counts[0]?.used ?? 0
  while ((await take()).store !== 'lease') at += 1
  at += 10_000
  const answers = [await take(), await take()] as const
  t.same(
    answers.map(answer => answer.store),
    ['lease', 'lease'],
  )
  at += 19_000
  store.sweep()
  const before = await used()
  store.giveBack([ask], [answers[0]])
  t.equal(await used(), before - 1)
  store.forget(ask.key)
  store.giveBack([ask], [answers[1]])
  t.equal(await used(), before - 1, 'not once the counter has been reset')
})

t.test('giving back a charge that was already reported admits no more than the quota', async t => {
  const open = await connect(t)
  if (open === undefined) return
  const bench = open(1)
  const [store] = bench.instances as [LeasedStore]
  const ask = leased(windowOf(1000, 1000))
  const take = async () => (await store.take([ask], 'holder'))[0] as Answer
  let admitted = 0
  // Each first one is given back one request later, when it may already have been reported; the second stays.
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

t.test('tokens spent during a call that fails are not lent again by its late answer', async t => {
  let at = START
  const calls: { call: LeaseCall; resolve(answer?: LeaseAnswer): void; late?(answer: LeaseAnswer): void }[] =
    []
  const lender: LeaseClient = {
    lease: (call, late) => new Promise(resolve => calls.push({ call, resolve, ...(late && { late }) })),
    peek: async () => undefined,
  }
  const now = () => at
  const store = new LeasedStore(inProcess(now), lender, now)
  const ask = leased(windowOf(1000, 60_000))
  const take = () => store.take([ask], 'holder')
  const counts = [{ quota: 1000, used: 100, left: 900, violated: false, resetMs: 50_000 }]
  const answered = async (answer?: LeaseAnswer) => {
    at += 4
    calls.at(-1)?.resolve(answer)
    await new Promise(resolve => setImmediate(resolve))
  }
  for (let i = 0; i < 2; i += 1) {
    void take()
    await answered({ admitted: 1, ahead: 10, counts, at: 0 })
    for (; calls.length === i + 1 && i === 0; at += 1) if (take() instanceof Promise) break
  }
  while (calls.length === 2) void take()
  const { call, late } = calls[2] as (typeof calls)[number]
  t.ok(call.held > 0, 'more tokens are asked for before these run out')
  for (let i = 0; i < call.held; i += 1) t.notOk(take() instanceof Promise, 'spent meanwhile')
  await answered(undefined)
  late?.({ admitted: 0, ahead: 0, counts, at: 0 })
  t.ok(take() instanceof Promise, 'none is left')
  for (const { resolve } of calls) resolve(undefined)
  await store.close()
})

t.test('a request under an edited quota is not judged by a call made under the old one', async t => {
  const calls: LeaseCall[] = []
  const answers: ((answer: LeaseAnswer) => void)[] = []
  const lender: LeaseClient = {
    lease(call) {
      calls.push(call)
      return new Promise(resolve => answers.push(resolve))
    },
    peek: async () => undefined,
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
  answers[0]?.({ admitted: 0, ahead: 0, counts: counts(10, 10), at: 0 })
  t.equal((await first)[0]?.granted, false)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(calls[1]?.demand, raised.demand, 'the edited quota gets a call of its own')
  answers[1]?.({ admitted: 1, ahead: 0, counts: counts(1000, 11), at: 0 })
  t.equal((await second)[0]?.granted, true)
})

t.test('a refused slot costs no leased token', async t => {
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
      (await both()).map(({ granted, counts }) => [granted, counts[0]?.left]),
      [
        [false, 9],
        [false, 0],
      ],
      'nor does the answer say so',
    )
  t.equal(await knock(bench, 0, ask, 20), 9)
})

t.test('when the lender cannot lend, the fallback store counts', async t => {
  const at = START
  const store = new LeasedStore(
    inProcess(() => at),
    { lease: async () => undefined, peek: async () => undefined },
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
