/** Lifetime windows and the credit that is added to them, in process and on Redis. */
import fc from 'fast-check'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import { clusterUrl, redisUrl } from '../../helpers/redis.js'
import { START } from './admissions.js'
import {
  addCredit,
  admitted,
  type Bench,
  burst,
  freshKey,
  type Kind,
  kinds,
  onRedis,
  prepaid,
  sustained,
  windowOf,
  windows,
} from './counting.js'
import { storeOn } from './opened.js'

const YEAR = 365 * 24 * 3_600_000

const costing = (ask: Ask, cost: number): Ask => ({
  ...ask,
  demand: { ...ask.demand, cost } as Ask['demand'],
})
const one = async ({ store }: Bench, ask: Ask) => (await store.take([ask], 'holder'))[0] as Answer

const onCluster: Kind = {
  name: 'on a Cluster',
  open: async t => onRedis(t, await clusterUrl(t)),
  runs: 20,
}

for (const kind of [...kinds, onCluster]) {
  t.test(`lifetime windows ${kind.name}`, async t => {
    const bench = await kind.open(t)
    if (bench === undefined) return

    t.test('what is spent stays spent for years', async t => {
      const ask = windows(freshKey(), prepaid(3))
      t.equal(await admitted(bench, ask, bench.at, 5), 3)
      t.equal(await admitted(bench, ask, bench.at + 20 * YEAR, 5), 0)
      const [seen] = await bench.store.peek([ask])
      t.match(seen?.counts, [{ quota: 3, used: 3, left: 0, violated: true, credit: 0, resetMs: 0 }])
    })

    t.test('without a quota only credit admits, at once and no more than it', async t => {
      const ask = windows(freshKey(), prepaid(0))
      t.equal(await admitted(bench, ask, bench.at, 3), 0)
      t.match(await addCredit(bench, ask.key, 4), { result: 'added', entry: { credit: 4, amount: 4 } })
      t.equal(await admitted(bench, ask, bench.at, 9), 4)
      t.match(await addCredit(bench, ask.key, 2), { result: 'added', entry: { credit: 6 } })
      t.match((await one(bench, ask)).counts, [{ quota: 6, used: 5, left: 1, credit: 6 }])
      t.equal(await admitted(bench, ask, bench.at, 9), 1)
    })

    t.test('a request is charged in the lifetime window and the others, or in none', async t => {
      const ask = windows(freshKey(), burst(2), prepaid(5))
      t.equal(await admitted(bench, ask, bench.at, 10), 2)
      t.match((await bench.store.peek([ask]))[0]?.counts, [{ used: 2 }, { used: 2, left: 3 }])
      t.equal(await admitted(bench, ask, bench.at + 1000, 10), 2)
      t.equal(await admitted(bench, costing(ask, 2), bench.at + 1000, 1), 0, 'one is left')
      t.equal(await admitted(bench, ask, bench.at + 1000, 10), 1)
      t.equal(await admitted(bench, ask, bench.at + 60_000, 10), 0)
      t.match((await bench.store.peek([ask]))[0]?.counts, [{ used: 0 }, { used: 5 }])
    })

    t.test('a raised quota adds the difference, and a lowered one takes nothing back', async t => {
      const key = freshKey()
      t.equal(await admitted(bench, windows(key, prepaid(3)), bench.at, 9), 3)
      t.equal(await admitted(bench, windows(key, prepaid(5)), bench.at, 9), 2)
      await addCredit(bench, key, 1)
      t.equal(await admitted(bench, windows(key, prepaid(2)), bench.at, 9), 0)
      t.equal(await admitted(bench, windows(key, prepaid(6)), bench.at, 9), 2)
    })

    t.test('what was spent is known when the policy has had other windows in between', async t => {
      const key = freshKey()
      t.equal(await admitted(bench, windows(key, prepaid(3), prepaid(3, 'second')), bench.at, 2), 2)
      for (let i = 0; i < 10; i += 1) {
        const other = { ...windowOf(5, 31 * 24 * 3_600_000), name: `w${i}` }
        t.equal(await admitted(bench, windows(key, other), bench.at + i, 1), 1)
      }
      t.equal(await admitted(bench, windows(key, sustained(100)), bench.at + YEAR, 1), 1)
      t.equal(await admitted(bench, windows(key, prepaid(3, 'second'), prepaid(4)), bench.at + 1, 9), 1)
      t.equal(await admitted(bench, windows(key, prepaid(4)), bench.at + 1, 9), 1)
    })

    t.test(
      'a charge that is given back can be spent again, and a late charge may exceed the quota',
      async t => {
        const ask = windows(freshKey(), prepaid(10))
        const answer = await one(bench, costing(ask, 8))
        bench.at += 5000
        bench.store.giveBack([costing(ask, 5)], [answer])
        t.equal(await admitted(bench, ask, bench.at + YEAR, 20), 7)
        bench.store.charge([{ ask, units: 4 }])
        await addCredit(bench, ask.key, 5)
        t.equal(await admitted(bench, ask, bench.at, 20), 1)
      },
    )

    t.test('credit is added once for each id', async t => {
      const key = freshKey()
      const first = await addCredit(bench, key, 5, 'a')
      t.match(await addCredit(bench, key, 7, 'b'), { result: 'added', entry: { credit: 12 } })
      t.match(await addCredit(bench, key, 5, 'a'), { result: 'repeated', entry: { amount: 5, credit: 5 } })
      t.equal(first.result, 'added')
      t.equal(await admitted(bench, windows(key, prepaid(0)), bench.at, 20), 12)
    })

    t.test('of credit sent many times at once with one id, one is added', async t => {
      const key = freshKey()
      const sent = await Promise.all(Array.from({ length: 20 }, () => addCredit(bench, key, 5, 'a')))
      t.equal(sent.filter(({ result }) => result === 'added').length, 1)
      t.equal(await admitted(bench, windows(key, prepaid(0)), bench.at, 20), 5)
    })

    t.test('credit can be taken back, but not below nothing, nor given beyond the most', async t => {
      const key = freshKey()
      await addCredit(bench, key, 5)
      t.same(await addCredit(bench, key, -6), { result: 'beyond', credit: 5 })
      t.same(await addCredit(bench, key, 999_996), { result: 'beyond', credit: 5 })
      t.match(await addCredit(bench, key, -5), { result: 'added', entry: { credit: 0 } })
      t.equal(await admitted(bench, windows(key, prepaid(0)), bench.at, 20), 0)
    })

    t.test('the newest hundred credits of a project are listed, the newest first', async t => {
      const key = freshKey()
      for (let i = 1; i <= 103; i += 1) await addCredit(bench, key, i)
      const list = await bench.credit.list(key)
      t.equal(list.length, 100)
      t.same([list.at(0)?.amount, list.at(-1)?.amount, list.at(0)?.credit], [103, 4, (103 * 104) / 2])
      t.match(list.at(0), { why: 'Invoice 7', by: 'dana', window: 'prepaid' })
    })

    t.test('never is more spent than quota and credit, and all of it by those who ask enough', async () => {
      const step = fc.oneof(
        fc.record({ ask: fc.integer({ min: 1, max: 12 }), cost: fc.integer({ min: 1, max: 5 }) }),
        fc.record({ add: fc.integer({ min: 1, max: 30 }) }),
        fc.record({ wait: fc.nat(YEAR) }),
        fc.record({ back: fc.integer({ min: 1, max: 5 }) }),
        fc.record({ quota: fc.nat(20) }),
      )
      const property = fc.asyncProperty(
        fc.nat(20),
        fc.array(step, { maxLength: 25 }),
        async (first, steps) => {
          const key = freshKey()
          bench.at = START
          let [quota, credit, spent] = [first, 0, 0]
          let last: { ask: Ask; answer: Answer; left: number } | undefined
          const ask = (cost: number) => costing(windows(key, prepaid(quota)), cost)
          for (const one of steps) {
            if ('wait' in one) bench.at += one.wait
            else if ('add' in one) {
              await addCredit(bench, key, one.add)
              credit += one.add
            } else if ('quota' in one) quota = one.quota
            else if ('back' in one) {
              if (last === undefined || last.left < one.back) continue
              bench.store.giveBack([ask(one.back)], [last.answer])
              last.left -= one.back
              spent -= one.back
            } else {
              const answers = await bench.many(ask(one.cost), one.ask)
              const granted = answers.filter(answer => answer.granted)
              spent += granted.length * one.cost
              const answer = granted.at(-1)
              if (answer !== undefined) last = { ask: ask(one.cost), answer, left: one.cost }
              if (granted.length > 0 && spent > quota + credit) return false
            }
          }
          const before = spent
          spent += (await bench.many(ask(1), quota + credit + 1)).filter(one => one.granted).length
          // A quota that was lowered takes nothing back.
          return spent === Math.max(before, quota + credit)
        },
      )
      await fc.assert(property, { numRuns: 5 * kind.runs })
    })
  })
}

t.test('on Redis a counter with a lifetime window and its credit never expire, others do', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const { ask } = await storeOn(t, url)
  const lasting = windows('sluice:1:{a}:e:project-limits:b', burst(5), prepaid(5))
  const ending = windows('sluice:1:{a}:e:project-limits:c', burst(5))
  await ask(lasting)
  await ask(ending)
  t.equal(await redis.pttl(lasting.key), -1)
  t.ok((await redis.pttl(ending.key)) > 0)
  await ask({ ...lasting, demand: ending.demand })
  t.equal(await redis.pttl(lasting.key), -1, 'nor when its policy has lost the window for a while')
})
