/** Meters: what they admit, how long they refuse, and what a flood or a lost Redis costs. */
import fc from 'fast-check'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { MOST_KEYS } from '../../../gateway/decide/store/meters.js'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { Answer, Ask, Count } from '../../../gateway/decide/store/store.js'
import type { MeterDemand } from '../../../gateway/demand.js'
import type { OnStoreError } from '../../../gateway/types.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { endsWithin, waitUntil } from '../../helpers/wait.js'
import { START } from './admissions.js'
import { type Bench, freshKey, kinds } from './counting.js'
import { decide, bench as deciderOn, rule } from './deciding.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
/** Long enough for a Redis that responds, on a machine that is busy with other tests. */
const DEADLINE_MS = 200

type Limit = Pick<MeterDemand, 'quota' | 'ms' | 'blockMs'>
const per = (seconds: number, quota: number, blockSeconds = 0): Limit => {
  return { quota, ms: seconds * 1000, blockMs: blockSeconds * 1000 }
}
function meter(key: string, limit: Limit, cost?: number, onStoreError: OnStoreError = 'local'): Ask {
  return { key, demand: { kind: 'meter', ...limit, cost }, group: 0, onStoreError }
}
async function take({ store }: Pick<Bench, 'store'>, ask: Ask): Promise<Answer> {
  const [answer] = await store.take([ask], '')
  return answer as Answer
}
const countOf = ({ counts }: Answer) => counts[0] as Count

/** The simplest model of a meter's rules. */
class Model {
  #used = 0
  #begin = 0
  #end = 0

  take({ quota, ms, blockMs }: Limit, cost: number, now: number) {
    if (this.#used <= quota) this.#end = Math.min(this.#end, this.#begin + ms)
    if (now >= this.#end) {
      this.#used = 0
      this.#begin = now
      this.#end = now + ms
    }
    const granted = this.#used + cost <= quota
    const isFirstRefused = !granted && this.#used <= quota
    if (granted || isFirstRefused) this.#used += cost
    if (isFirstRefused) this.#end = Math.max(this.#end, now + blockMs)
    return { granted, used: this.#used, resetMs: this.#end - now }
  }

  /** Without the request the quota was not exceeded, so the counted refusal is removed as well, and its block. */
  giveBack({ quota }: Limit, cost: number, at: number, now: number): void {
    if (this.#begin > at || now >= this.#end) return
    this.#used = Math.max(0, Math.min(this.#used, quota) - cost)
  }
}

for (const { name, open, runs } of kinds) {
  t.test(`${name}: windows, blocks and charges given back behave like the model of a meter`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const step = fc.record({
      waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 300 }), fc.integer({ min: 300, max: 4100 })),
      giveBack: fc.boolean(),
      take: fc.boolean(),
      cost: fc.integer({ min: 1, max: 3 }),
    })
    const limit = fc.record({
      quota: fc.integer({ min: 1, max: 5 }),
      ms: fc.integer({ min: 1, max: 3 }).map(seconds => seconds * 1000),
      blockMs: fc.integer({ min: 0, max: 4 }).map(seconds => seconds * 1000),
    })
    await fc.assert(
      fc.asyncProperty(limit, fc.array(step, { maxLength: 60, size: 'max' }), async (limit, steps) => {
        const key = freshKey()
        const model = new Model()
        const granted: { ask: Ask; answer: Answer; cost: number; at: number }[] = []
        for (const { waitMs, giveBack, ...wanted } of steps) {
          bench.at += waitMs
          const last = giveBack ? granted.pop() : undefined
          if (last !== undefined) {
            bench.store.giveBack([last.ask], [last.answer])
            model.giveBack(limit, last.cost, last.at, bench.at)
          }
          if (!wanted.take) continue
          const cost = Math.min(wanted.cost, limit.quota)
          const ask = meter(key, limit, cost)
          const expected = model.take(limit, cost, bench.at)
          const answer = await take(bench, ask)
          if (answer.granted) granted.push({ ask, answer, cost, at: bench.at })
          const { used, resetMs, violated } = countOf(answer)
          t.same(
            { granted: answer.granted, violated, used, resetMs },
            { ...expected, violated: !expected.granted },
          )
        }
      }),
      { numRuns: 5 * runs },
    )
  })

  t.test(`${name}: simultaneous requests are admitted as if they came one after the other`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const ask = meter(freshKey(), per(60, 10, 600), 3)
    const answers = await bench.many(ask, 6)
    t.same(
      answers.map(answer => [answer.granted, countOf(answer).used]),
      [
        [true, 3],
        [true, 6],
        [true, 9],
        [false, 12],
        [false, 12],
        [false, 12],
      ],
    )
    t.equal(countOf(answers.at(-1) as Answer).resetMs, 600_000)
  })

  t.test(
    `${name}: a cost of several units is refused when it exceeds the quota, and given back whole`,
    async t => {
      const bench = await open(t)
      if (bench === undefined) return
      const key = freshKey()
      const spend = (cost: number) => take(bench, meter(key, per(60, 10), cost))
      t.match(await spend(4), { granted: true, counts: [{ used: 4, left: 6 }] })
      const second = await spend(5)
      t.match(second, { granted: true, counts: [{ used: 9, left: 1 }] })
      bench.store.giveBack([meter(key, per(60, 10), 5)], [second])
      t.match(await bench.store.peek([meter(key, per(60, 10), 6)]), [
        { granted: true, counts: [{ used: 10 }] },
      ])
      t.match(
        await spend(7),
        { granted: false, counts: [{ left: 0 }] },
        'one unit more than is left is refused',
      )
    },
  )

  t.test(`${name}: a raised quota admits a client at once that was refused many times`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const key = freshKey()
    const ask = (quota: number) => take(bench, meter(key, per(60, quota, 600)))
    for (let i = 0; i < 60; i += 1) await ask(5)
    t.match(await ask(5), { granted: false, counts: [{ used: 6, left: 0 }] })
    t.match(await ask(20), { granted: true, counts: [{ used: 7, left: 13 }] })
    t.match(await ask(5), { granted: false }, 'a lowered quota refuses')
  })

  t.test(`${name}: a charge given back counts only in its own window`, async t => {
    const bench = await open(t)
    if (bench === undefined) return
    const ask = meter(freshKey(), per(2, 5))
    const giveBack = (answer: Answer) => bench.store.giveBack([ask], [answer])
    giveBack(await take(bench, ask))
    const second = await take(bench, ask)
    t.match(second, { counts: [{ used: 1 }] }, 'the charge is available again')
    bench.at += 2100
    t.match(await take(bench, ask), { counts: [{ used: 1 }] })
    giveBack(second)
    t.match(await take(bench, ask), { counts: [{ used: 2 }] }, 'the next window gets no bonus')
  })
}

t.test('a flood of keys forgets the oldest windows', async t => {
  const store = new MemoryStore(() => START)
  const used = (key: string) => countOf(store.take([meter(key, per(60, 1000))])[0] as Answer).used
  for (let i = 0; i < MOST_KEYS + 1000; i++) used(`key ${i}`)
  t.equal(used('key 0'), 1, 'the oldest key is forgotten')
  t.equal(used(`key ${MOST_KEYS + 999}`), 2, 'the newest key is remembered')
  t.equal(used('key 2000'), 2)
})

t.test('a flood of keys ends no block, and report-only keys displace no enforced ones', async t => {
  const store = new MemoryStore(() => START)
  const spend = (key: string) => store.take([meter(key, per(60, 1, 3600))])[0]
  const [blocked, open] = ['sluice:1:*:{v:v:1:a}:e', 'sluice:1:*:{v:v:1:b}:e']
  spend(open)
  for (let i = 0; i < 3; i++) spend(blocked)
  for (let i = 0; i < MOST_KEYS; i++) spend(`sluice:1:*:{v:watch:6:${i}}:r`)
  t.match(spend(open), { granted: false, counts: [{ used: 2 }] }, 'report-only keys are counted separately')
  for (let i = 0; i < MOST_KEYS; i++) spend(`sluice:1:*:{v:v:6:${i}}:e`)
  t.match(spend(blocked), { granted: false, counts: [{ used: 2 }] })
})

async function gatewayOn(t: Test, redis: string, deadline = 2000, instances = 1) {
  const changes: boolean[] = []
  let late = 0
  const hooks = {
    failed() {},
    late: () => void late++,
    awayChanged: (away: boolean) => void changes.push(away),
  }
  const opened = await openStore({ redis, deadline, instances, onError: 'local' }, quiet, hooks)
  t.teardown(() => opened.store.close())
  return { ...opened, changes, late: () => late }
}

t.test('two gateways admit exactly the quota of 60 simultaneous requests', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const [one, other] = [await gatewayOn(t, url), await gatewayOn(t, url)]
  const ask = meter('sluice:1:*:{shared}:e', per(60, 20))
  const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => take(i % 2 ? one : other, ask)))
  t.equal(answers.filter(({ granted }) => granted).length, 20)
})

/** A store on Redis, and a client that inspects it. */
async function storeAndClient(t: Test, url: string) {
  const redis = new Redis(url)
  const store = new RedisStore({ url, log: quiet })
  t.teardown(async () => {
    redis.disconnect()
    await store.close()
  })
  await store.answers(5000)
  return { redis, store }
}

t.test(
  'a flood of 100000 refused requests costs Redis few commands, and a raised quota applies at once',
  async t => {
    const url = await redisUrl(t)
    if (url === undefined) return
    const { redis, store } = await storeAndClient(t, url)
    const world = deciderOn(() => store)
    const ask = async (limit: Limit) => {
      const verdict = await decide(world, [rule('flood', 'metered', limit, { key: ['client-ip'] })])
      return { allowed: verdict.allowed, ...verdict.outcomes[0] }
    }
    const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
    const before = await commands()
    let admitted = 0
    for (let i = 0; i < 100_000; i++) if ((await ask(per(60, 10, 600))).allowed) admitted++
    t.equal(admitted, 10)
    const spent = (await commands()) - before
    t.ok(spent < 100, `${spent} commands`)
    t.match(await ask(per(60, 12, 600)), { allowed: true, store: 'redis', readings: [{ used: 12 }] })
    t.match(await ask(per(60, 12, 600)), { allowed: false, readings: [{ resetMs: 600_000 }] })
    const { allowed, readings } = await ask(per(60, 12))
    t.equal(allowed, false)
    t.ok(Number(readings?.[0]?.resetMs) <= 60_000, 'a block removed from the rule ends at once')
  },
)

t.test('giving back a charge on a key that has none creates no key in Redis', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const { redis, store } = await storeAndClient(t, url)
  const answer = await take({ store }, meter('{somebody}', per(60, 5)))
  store.giveBack([meter('{nobody}', per(60, 5))], [answer])
  t.match(await take({ store }, meter('{somebody}', per(60, 5))), { counts: [{ used: 2 }] })
  t.equal(await redis.exists('{nobody}'), 0)
})

t.test(
  'with a silent Redis each rule follows its onStoreError, and counts return without a burst',
  async t => {
    if (redisCommand(t) === undefined) return
    const server = await startRedis()
    t.teardown(() => server.stop())
    const here = await gatewayOn(t, server.url, DEADLINE_MS, 2)
    const key = 'sluice:1:*:{silent}:e'
    const ask = meter(key, per(60, 10))
    t.match(await take(here, ask), { store: 'redis', counts: [{ used: 1, left: 9 }] })
    server.pause()
    const waits: number[] = []
    const answers: Answer[] = []
    for (let i = 0; i < 8; i++) {
      const startedAt = performance.now()
      const answer = take(here, ask)
      t.ok(await endsWithin(1.5 * DEADLINE_MS, answer), 'at its deadline')
      answers.push(await answer)
      waits.push(performance.now() - startedAt)
    }
    t.equal(
      answers.filter(({ granted }) => granted).length,
      4,
      'this gateway admits its half of what was left',
    )
    t.match(answers[0], { store: 'local', counts: [{ quota: 5, used: 2, left: 3 }] })
    t.ok(Math.min(...waits.slice(4)) < DEADLINE_MS / 2, 'an open breaker does not wait')
    t.match(await take(here, meter(key, per(60, 10), 1, 'open')), {
      granted: true,
      store: 'none',
      counts: [{ used: undefined }],
    })
    t.match(await take(here, meter(key, per(60, 10), 1, 'closed')), { granted: false, unavailable: true })
    t.strictSame(here.changes, [true])
    server.resume()
    await waitUntil('Redis is back', () => here.changes.length === 2)
    const back = await take(here, ask)
    t.match(
      back,
      { store: 'redis', counts: [{ used: 6 }] },
      'late charges are given back, and the four of this gateway are charged',
    )
    t.ok(here.late() > 0, 'late answers are reported')
  },
)

t.test('whole seconds stay whole seconds, at whatever time of the clock', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 100_000_000 }).map(n => n / 997),
      fc.integer({ min: 1, max: 3600 }),
      (now, seconds) => {
        const [answer] = new MemoryStore(() => now).take([meter('{a}', per(seconds, 5))])
        return countOf(answer as Answer).resetMs === seconds * 1000
      },
    ),
    // Few sums of floating-point numbers are off.
    { numRuns: 5_000 },
  )
})
