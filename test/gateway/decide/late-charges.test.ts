/** Charges made after the request, on each counter store. */
import fc from 'fast-check'
import t from 'tap'
import { LateCharges } from '../../../gateway/decide/leases/leased-store.js'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { Answer, Ask, Count, LateCharge } from '../../../gateway/decide/store/store.js'
import type { MeterDemand } from '../../../gateway/demand.js'
import { faultProxy } from '../../helpers/faults.js'
import { clusterUrl, redisCommand, startRedis } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'
import { freshKey, kinds } from './counting.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const hooks = { failed() {}, late() {}, awayChanged() {} }

type Limit = Pick<MeterDemand, 'quota' | 'ms' | 'blockMs'>
const MINUTE = { quota: 5, ms: 60_000, blockMs: 0 }

function later(key: string, limit: Limit = MINUTE, group = 0): Ask {
  const demand: MeterDemand = { kind: 'meter', ...limit, afterAnswer: () => 1 }
  return { key, demand, group, onStoreError: 'local' }
}
/** A grant whose charge is given back. */
const GRANTED: Answer = { granted: true, unavailable: false, store: 'memory', counts: [] }
const countOf = ({ counts }: Answer) => counts[0] as Count

/** The simplest model of such a meter: asking charges nothing except the first refusal. */
class Model {
  #used = 0
  #begin = 0
  #end = 0

  take({ quota, ms, blockMs }: Limit, now: number) {
    this.#look(ms, quota, now)
    const granted = this.#used < quota
    if (!granted && this.#used === quota) {
      this.#used += 1
      this.#end = Math.max(this.#end, now + blockMs)
    }
    return { granted, used: this.#used }
  }

  charge({ quota, ms }: Limit, units: number, now: number): void {
    this.#look(ms, quota, now)
    this.#used = Math.max(this.#used, Math.min(quota, this.#used + units))
  }

  #look(ms: number, quota: number, now: number): void {
    if (this.#used <= quota) this.#end = Math.min(this.#end, this.#begin + ms)
    if (this.#used > 0 && now < this.#end) return
    this.#used = 0
    this.#begin = now
    this.#end = now + ms
  }
}

for (const { name, open, runs } of kinds) {
  t.test(
    `${name}: an ask is granted while there is room and charges nothing, and a late charge fills the quota`,
    async t => {
      const bench = await open(t)
      if (bench === undefined) return
      const step = fc.record({
        waitMs: fc.oneof(
          fc.constant(0),
          fc.integer({ min: 1, max: 300 }),
          fc.integer({ min: 300, max: 4100 }),
        ),
        units: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9 })),
      })
      const seconds = (min: number, max: number) => fc.integer({ min, max }).map(value => value * 1000)
      const limit = fc.record({
        quota: fc.integer({ min: 1, max: 8 }),
        ms: seconds(1, 3),
        blockMs: seconds(0, 4),
      })
      await fc.assert(
        fc.asyncProperty(limit, fc.array(step, { maxLength: 60, size: 'max' }), async (limit, steps) => {
          const ask = later(freshKey(), limit)
          const model = new Model()
          for (const { waitMs, units } of steps) {
            bench.at += waitMs
            if (units > 0) {
              bench.store.charge([{ ask, units }])
              model.charge(limit, units, bench.at)
              continue
            }
            const expected = model.take(limit, bench.at)
            const [answer] = (await bench.store.take([ask], 'holder')) as [Answer]
            t.same({ granted: answer.granted, used: countOf(answer).used }, expected)
          }
        }),
        { numRuns: 5 * runs },
      )
    },
  )

  t.test(`${name}: a late ask and a plain one are granted or refused together`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const tag = `{${freshKey().replace(/\W/g, '')}}`
    const [late, plain] = [later(`${tag}:late`), { ...later(`${tag}:plain`) }]
    const both = [late, { ...plain, demand: { kind: 'meter', ...MINUTE } as const }]
    const many = (await Promise.all([1, 2, 3].map(() => bench.store.take(both, 'holder')))) as Answer[][]
    t.same(
      many.map(answers => answers.map(answer => countOf(answer).used)),
      [
        [0, 1],
        [0, 2],
        [0, 3],
      ],
    )
    bench.store.giveBack(both, many[2] as Answer[])
    bench.store.charge([{ ask: late, units: 1_000_000_000 }])
    const refused = (await bench.store.take(both, 'holder')) as Answer[]
    t.same(
      refused.map(answer => [answer.granted, countOf(answer).used]),
      [
        [false, 6],
        [false, 2],
      ],
    )
  })

  t.test(
    `${name}: what is left of requests that began under a shorter window ends neither a longer one nor its block`,
    async t => {
      const bench = await open(t)
      if (bench === undefined) return
      const [key, long] = [freshKey(), { quota: 5, ms: 3_600_000, blockMs: 7_200_000 }]
      const [before, ask] = [later(key, { quota: 5, ms: 2000, blockMs: 0 }), later(key, long)]
      const plain = { ...before, demand: { ...before.demand, afterAnswer: undefined } } as Ask
      bench.store.charge([{ ask, units: 3 }])
      bench.at += 10_000
      bench.store.charge([{ ask: before, units: 1 }])
      bench.store.giveBack([plain], [{ ...GRANTED, at: bench.at * (name === 'on Redis' ? 1000 : 1) }])
      const [first] = (await bench.store.take([ask], 'holder')) as [Answer]
      t.same([first.granted, countOf(first).used], [true, 3])
      t.equal(countOf(first).resetMs, 3_590_000, 'the window that began with the first charge')
      bench.store.charge([{ ask, units: 2 }])
      const [refused] = (await bench.store.take([ask], 'holder')) as [Answer]
      t.same([refused.granted, countOf(refused).resetMs], [false, 7_200_000])
      bench.at += 10_000
      bench.store.charge([{ ask: before, units: 1 }])
      const [still] = (await bench.store.take([ask], 'holder')) as [Answer]
      t.same([still.granted, countOf(still).resetMs], [false, 7_190_000])
    },
  )

  t.test(
    `${name}: simultaneous asks are all admitted while there is room, and all refused otherwise`,
    async t => {
      const bench = await open(t)
      if (bench === undefined) return
      const ask = later(freshKey())
      t.ok((await bench.many(ask, 20)).every(answer => answer.granted && countOf(answer).used === 0))
      bench.store.charge([{ ask, units: 20 }])
      t.same(new Set((await bench.many(ask, 20)).map(({ granted }) => granted)), new Set([false]))
    },
  )
}

t.test('charges of one turn are sent together, one for each counter', async t => {
  const sent: (readonly LateCharge[])[] = []
  const charges = new LateCharges(list => sent.push(list))
  const [one, two] = [later('one'), later('two')]
  charges.add([{ ask: one, units: 2 }])
  charges.add([{ ask: two, units: 1 }])
  charges.add([{ ask: one, units: 3 }])
  t.same(sent, [])
  await new Promise(setImmediate)
  t.same(sent, [
    [
      { ask: one, units: 5 },
      { ask: two, units: 1 },
    ],
  ])
  charges.add([{ ask: two, units: 4 }])
  charges.send()
  await new Promise(setImmediate)
  t.equal(sent.length, 2, 'charges sent early are not sent again')
})

t.test('on a Cluster each counter is charged on its own node', async t => {
  const redis = await clusterUrl(t)
  if (redis === undefined) return
  const settings = { redis, deadline: 1000, instances: 1, onError: 'closed' } as const
  const { store } = await openStore(settings, quiet, hooks)
  t.teardown(() => store.close())
  const asks = Array.from({ length: 12 }, (_, i) => later(`sluice:1:*:{volumetric:late:${i}}:e`))
  const answers = (await store.take(asks.slice(0, 3), 'holder')) as Answer[]
  t.ok(
    answers.every(({ granted, store }) => granted && store === 'redis'),
    'an ask of several slots is granted',
  )
  store.charge(asks.map((ask, i) => ({ ask, units: i + 1 })))
  await waitUntil('the charges', async () => {
    // Charges that did not reach a node are sent with the next ask.
    const seen = await Promise.all(asks.map(ask => store.take([ask], 'holder')))
    return seen.every(([answer], i) => countOf(answer as Answer).used === (i < 4 ? i + 1 : 6))
  })
})

t.test(
  'late charges made while Redis is away are counted in process, and sent to Redis afterwards',
  async t => {
    if (redisCommand(t) === undefined) return
    const redis = await startRedis()
    const proxy = await faultProxy(redis.port)
    t.teardown(async () => {
      await proxy.stop()
      await redis.stop()
    })
    const open = async (url: string) => {
      const { store } = await openStore(
        { redis: url, deadline: 100, instances: 1, onError: 'local' },
        quiet,
        hooks,
      )
      t.teardown(() => store.close())
      return store
    }
    const store = await open(`redis://127.0.0.1:${proxy.port}`)
    const other = await open(redis.url)
    const ask = later('sluice:1:*:{volumetric:late:away}:e')
    const take = async () => ((await store.take([ask], 'holder')) as Answer[])[0] as Answer
    await waitUntil('Redis to count', async () => (await take()).store === 'redis')
    store.charge([{ ask, units: 2 }])
    await waitUntil('the charge', async () => countOf(await take()).used === 2)
    await proxy.set({ kind: 'reset' })
    await waitUntil('Redis to be away', async () => (await take()).store === 'local')
    store.charge([{ ask, units: 1 }])
    store.charge([{ ask, units: 2 }])
    await waitUntil('a refusal', async () => !(await take()).granted)
    await proxy.set({ kind: 'pass' })
    await waitUntil('Redis to be back', async () => (await take()).store === 'redis')
    await waitUntil('the others to hear', async () => {
      const [answer] = (await other.peek([ask])) as [Answer]
      return !answer.granted
    })
  },
)
