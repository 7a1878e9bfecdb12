/** Windows counted one key at a time: what they admit, for how long they refuse, and what a flood or a lost Redis costs. */
import { mock } from 'node:test'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { MemoryWindows, RedisWindows } from '../../../gateway/decide/store/flexible.js'
import { WindowCounter } from '../../../gateway/decide/store/key-counter.js'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { KeyCount, KeyLimit, Spent } from '../../../gateway/plugin.js'
import type { OnStoreError } from '../../../gateway/types.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
/** Long enough for a Redis that answers, on a machine that is busy with other tests. */
const DEADLINE_MS = 200

async function open(t: Test, redis: string, deadline: number, instances = 1) {
  const changes: boolean[] = []
  const hooks = { failed() {}, awayChanged: (away: boolean) => changes.push(away) }
  const settings = { redis, deadline, instances, onError: 'local' } as const
  const { store, counter } = await openStore(settings, quiet, hooks)
  t.teardown(() => store.close())
  return { changes, spend: spenderOf(counter) }
}

const spenderOf =
  (counter: { spend(key: string, limit: KeyLimit, onStoreError: OnStoreError): Spent | Promise<Spent> }) =>
  async (key: string, limit: KeyLimit, onStoreError: OnStoreError = 'local') =>
    counter.spend(key, limit, onStoreError)

const per = (seconds: number, quota: number, blockSeconds = 0): KeyLimit => ({
  quota,
  windowMs: seconds * 1000,
  blockMs: blockSeconds * 1000,
})

const isGranted = (spent: Spent) => spent !== 'unavailable' && spent.granted

/** What the rules of a window say, in the plainest words. */
class Model {
  #used = 0
  #endsAt = 0
  #window = 0

  spend({ quota, windowMs, blockMs }: KeyLimit, now: number) {
    if (now >= this.#endsAt) {
      this.#used = 0
      this.#endsAt = now + windowMs
      this.#window += 1
    }
    const isFirstRefused = this.#used === quota
    if (this.#used <= quota) this.#used += 1
    const granted = this.#used <= quota
    if (isFirstRefused) this.#endsAt = Math.max(this.#endsAt, now + blockMs)
    const [window, endsAt] = [this.#window, this.#endsAt]
    const giveBack = (at: number) => {
      if (window === this.#window && endsAt === this.#endsAt && at < endsAt) this.#used -= 1
    }
    return { granted, used: this.#used, resetMs: endsAt - now, giveBack }
  }
}

t.test(
  'in virtual time: a window ends whole, a block outlasts it, what was given back counts in its window only',
  async t => {
    t.teardown(() => mock.timers.reset())
    const step = fc.record({
      waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 900 }), fc.integer({ min: 900, max: 4100 })),
      giveBack: fc.boolean(),
    })
    const limit = fc.record({
      quota: fc.integer({ min: 1, max: 5 }),
      windowMs: fc.integer({ min: 1, max: 3 }).map(seconds => seconds * 1000),
      blockMs: fc.integer({ min: 0, max: 4 }).map(seconds => seconds * 1000),
    })
    await fc.assert(
      fc.asyncProperty(limit, fc.array(step, { maxLength: 60 }), async (limit, steps) => {
        mock.timers.reset()
        mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
        const now = () => Date.now()
        const counter = new WindowCounter({ local: new MemoryWindows('memory'), instances: 1, now })
        const model = new Model()
        const granted: [KeyCount, { giveBack(at: number): void }][] = []
        for (const { waitMs, giveBack } of steps) {
          mock.timers.tick(waitMs)
          const [real, modelled] = granted.at(-1) ?? []
          if (giveBack && real && modelled) {
            granted.pop()
            real.giveBack?.()
            await new Promise(resolve => setImmediate(resolve))
            modelled.giveBack(now())
          }
          const expected = model.spend(limit, now())
          const spent = (await counter.spend('key', limit, 'local')) as KeyCount
          if (spent.granted) granted.push([spent, expected])
          const { used, resetMs } = expected
          if (spent.granted !== expected.granted || spent.used !== used || spent.resetMs !== resetMs) {
            throw new Error(`${JSON.stringify(spent)} instead of ${JSON.stringify(expected)}`)
          }
        }
      }),
      { numRuns: 150 },
    )
  },
)

t.test('a request may count as several: refused when they pass the quota, and given back whole', async t => {
  const stores: string[] = ['']
  const redis = await redisUrl(t)
  if (redis) stores.push(redis)
  for (const [i, store] of stores.entries()) {
    const { counter } = await openStore(
      { redis: store, deadline: 2000, instances: 1, onError: 'local' },
      quiet,
      { failed() {}, awayChanged() {} },
    ).then(opened => {
      t.teardown(() => opened.store.close())
      return opened
    })
    const spend = async (cost: number) =>
      (await counter.spend(`cost:${i}`, per(60, 10), 'local', cost)) as KeyCount
    t.match(await spend(4), { granted: true, used: 4, left: 6 })
    const second = await spend(5)
    t.match(second, { granted: true, used: 9, left: 1 })
    second.giveBack?.()
    await waitUntil('five given back', async () => {
      const peeked = (await counter.peek(`cost:${i}`, per(60, 10), 'local', 6)) as KeyCount
      return peeked.granted && peeked.used === 10
    })
    t.match(await spend(7), { granted: false, left: 0 }, 'one more than is left')
  }
})

t.test('a flood of keys leaves bounded memory: the oldest windows are forgotten', async t => {
  const windows = new MemoryWindows('memory')
  for (let i = 0; i < 101_000; i++) await windows.count(`key ${i}`, 60_000)
  t.equal((await windows.count('key 0', 60_000)).used, 1, 'forgotten')
  t.equal((await windows.count('key 100999', 60_000)).used, 2, 'remembered')
  t.equal((await windows.count('key 2000', 60_000)).used, 2)
})

t.test(
  'a flood of keys frees nobody who is blocked, and report-only keys displace nothing enforced',
  async t => {
    const counter = new WindowCounter({
      local: new MemoryWindows('memory'),
      instances: 1,
      now: () => performance.now(),
    })
    const limit = per(60, 1, 3600)
    const spend = (key: string) => counter.spend(key, limit, 'local')
    const [blocked, open] = ['sluice:*:{v:v:1:a}:e', 'sluice:*:{v:v:1:b}:e']
    await spend(open)
    for (let i = 0; i < 3; i++) await spend(blocked)
    for (let i = 0; i < 100_000; i++) await spend(`sluice:*:{v:watch:6:${i}}:r`)
    t.match(await spend(open), { granted: false, used: 2 }, 'report-only keys are counted apart')
    for (let i = 0; i < 100_000; i++) await spend(`sluice:*:{v:v:6:${i}}:e`)
    t.match(await spend(blocked), { granted: false, used: 2 })
  },
)

t.test('a raised quota admits a source that was refused many times, at once', async t => {
  const counter = new WindowCounter({
    local: new MemoryWindows('memory'),
    instances: 1,
    now: () => performance.now(),
  })
  const ask = async (limit: KeyLimit) => counter.spend('source', limit, 'local')
  await Promise.all(Array.from({ length: 60 }, () => ask(per(60, 5, 600))))
  t.match(await ask(per(60, 5, 600)), { granted: false, used: 6, left: 0 })
  t.match(await ask(per(60, 20, 600)), { granted: true, used: 7, left: 13 })
  t.match(await ask(per(60, 5, 600)), { granted: false }, 'and one that is lowered refuses')
})

t.test('on Redis', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())

  t.test('two gateways admit exactly the quota of 60 requests at once', async t => {
    const [one, other] = [await open(t, url, 2000), await open(t, url, 2000)]
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => (i % 2 ? one : other).spend('sluice:{shared}', per(60, 20))),
    )
    t.equal(answers.filter(isGranted).length, 20)
  })

  t.test(
    'a flood of 100000 refused requests costs Redis nearly nothing; a raised quota counts at once',
    async t => {
      const { spend } = await open(t, url, 2000)
      const commands = async () =>
        Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
      const before = await commands()
      let granted = 0
      for (let i = 0; i < 100_000; i++)
        if (isGranted(await spend('sluice:{flood}', per(60, 10, 600)))) granted++
      t.equal(granted, 10)
      const spent = (await commands()) - before
      t.ok(spent < 100, `${spent} commands`)
      t.match(await spend('sluice:{flood}', per(60, 12, 600)), { granted: true, used: 12, store: 'redis' })
      t.match(await spend('sluice:{flood}', per(60, 12, 600)), { granted: false, resetMs: 600_000 })
      const resetMs = Number(
        await spend('sluice:{flood}', per(60, 12)).then(spent => (spent as KeyCount).resetMs),
      )
      t.ok(resetMs <= 60_000, 'and so does a block that is taken away')
    },
  )

  t.test('what is given back comes back in its own window only', async t => {
    const { spend } = await open(t, url, 2000)
    const first = (await spend('sluice:{back}', per(2, 5))) as KeyCount
    first.giveBack?.()
    await waitUntil('it is back', async () => (await redis.get('sluice:{back}')) === '0')
    const second = (await spend('sluice:{back}', per(2, 5))) as KeyCount
    await sleep(2100)
    t.match(await spend('sluice:{back}', per(2, 5)), { used: 1 })
    second.giveBack?.()
    const windows = new RedisWindows(redis)
    await windows.giveBack('sluice:{back}', 100)
    await windows.giveBack('sluice:{nobody}', 100)
    t.equal(await redis.get('sluice:{back}'), '1', 'the next window has no bonus')
    t.equal(await redis.exists('sluice:{nobody}'), 0)
  })
})

t.test(
  'a silent Redis: each rule goes on as it says, soon without waiting, and comes back without a burst',
  async t => {
    if (redisCommand(t) === undefined) return
    const server = await startRedis()
    t.teardown(() => server.stop())
    const { spend, changes } = await open(t, server.url, DEADLINE_MS, 2)
    const key = 'sluice:{silent}'
    t.match(await spend(key, per(60, 10)), { store: 'redis', used: 1, left: 9 })
    server.pause()
    const waits: number[] = []
    const answers: Spent[] = []
    for (let i = 0; i < 8; i++) {
      const startedAt = performance.now()
      answers.push(await spend(key, per(60, 10)))
      waits.push(performance.now() - startedAt)
    }
    t.equal(answers.filter(isGranted).length, 5, 'this gateway’s half of the quota')
    t.match(answers[0], { store: 'local', used: 1, left: 4 })
    t.ok(Math.max(...waits) < 10 * DEADLINE_MS, `longest wait ${Math.max(...waits).toFixed(1)} ms`)
    t.ok(Math.min(...waits.slice(4)) < DEADLINE_MS / 2, 'an open breaker does not wait')
    t.match(await spend(key, per(60, 10), 'open'), { granted: true, store: 'none', used: undefined })
    t.equal(await spend(key, per(60, 10), 'closed'), 'unavailable')
    t.strictSame(changes, [true])
    server.resume()
    await waitUntil('Redis is back', () => changes.length === 2)
    const back = (await spend(key, per(60, 10))) as KeyCount
    t.equal(back.store, 'redis')
    t.ok((back.used as number) <= 5, `${back.used} counted: only what was sent before the breaker opened`)
  },
)
