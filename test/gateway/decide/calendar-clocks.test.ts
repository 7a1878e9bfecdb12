/** Which clock decides when a calendar window turns, and what is kept of it. */
import { Redis } from 'ioredis'
import t from 'tap'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import { longestMs } from '../../../gateway/decide/windows/calendar.js'
import { wallClock } from '../../../gateway/decide/windows/date-clock.js'
import type { Window } from '../../../gateway/demand.js'
import { redisUrl } from '../../helpers/redis.js'
import { freshKey, windowOf, windows } from './counting.js'
import { connect, knock, leased, pass } from './leasing.js'
import { periodOf } from './local-day.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const DAY = 86_400_000
const berlin = { unit: 'day', timezone: 'Europe/Berlin' } as const
const daily = (quota: number): Window => ({
  name: 'day',
  quota,
  ms: longestMs(berlin),
  algorithm: 'fixed-window',
  calendar: berlin,
})
/** Midnight in Berlin, at the start of the day on which summer time ends. */
const AUTUMN = Date.parse('2026-10-24T22:00:00Z')

t.test('gateways whose clocks differ start a new period at the same moment, by Redis’s clock', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  for (const [name, skews] of [
    ['seconds', [-3000, 4000]],
    ['most of a day', [-20 * 3_600_000, 20 * 3_600_000]],
  ] as const) {
    const clock = { at: AUTUMN - 12 * 3_600_000 }
    const stores = skews.map(skew => {
      return new RedisStore({ url, log: quiet, clock: () => clock.at * 1000, wall: () => clock.at + skew })
    })
    for (const store of stores) await store.answers(5000)
    const ask = windows(freshKey(), daily(10))
    const admitted = new Map<string, number>()
    const lengths = new Set<number | undefined>()
    for (let i = 0; i < 80; i += 1) {
      clock.at += 45 * 60_000
      // Just before, at and just after the moment.
      for (const at of [clock.at - 1, clock.at, clock.at + 1]) {
        const now = clock.at
        clock.at = at
        const store = stores[i % 2] as (typeof stores)[number]
        const [answer] = (await store.take([ask], 'holder')) as [Answer]
        const period = periodOf(berlin, at)
        if (answer.granted) admitted.set(period, (admitted.get(period) ?? 0) + 1)
        if (period === '2026-10-25') lengths.add(answer.counts[0]?.windowMs)
        clock.at = now
      }
    }
    t.ok(admitted.size >= 3)
    for (const [day, count] of admitted) t.equal(count, 10, `${day}, clocks off by ${name}`)
    t.strictSame([...lengths], [25 * 3_600_000], 'the window length includes the extra hour')
    for (const store of stores) await store.close()
  }
})

t.test('a key is kept until its last window has ended, and stays small', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const store = new RedisStore({ url, log: quiet })
  await store.answers(5000)
  t.teardown(() => store.close())
  const month = windowOf(1_000_000_000, 31 * DAY)
  const rolling = windows('sluice:1:{a}:month', windowOf(100, 1000), month)
  await store.take([rolling], 'holder')
  t.ok((await redis.pttl('sluice:1:{a}:month')) > 31 * DAY - 60_000)
  const calendar = windows('sluice:1:{a}:day', daily(5))
  const [answer] = await store.take([calendar], 'holder')
  const ttl = await redis.pttl('sluice:1:{a}:day')
  t.ok(Math.abs(ttl - (answer?.counts[0]?.resetMs ?? 0)) < 5000, `${ttl} ms`)

  const clock = { at: AUTUMN }
  const dense = new RedisStore({ url, log: quiet, clock: () => clock.at * 1000 })
  await dense.answers(5000)
  t.teardown(() => dense.close())
  const bare = windows('sluice:1:{a}:dense', month)
  const long = { ...bare, demand: { ...bare.demand, cost: 1000 } } as Ask
  let largest = 0
  for (let i = 0; i < 900; i += 1) {
    clock.at += Math.round((31 * DAY) / 700) + (i % 3)
    await dense.takeMany([long], 'holder', 40)
    if (i % 20 === 0) largest = Math.max(largest, await redis.strlen('sluice:1:{a}:dense'))
  }
  t.ok(largest > 300 && largest < 1024, `${largest} bytes`)
})

t.test('leases in a calendar window never add up to more than its quota', async t => {
  const open = await connect(t)
  if (open === undefined) return
  for (const count of [1, 2, 8]) {
    for (const cost of [1, 3]) {
      const bench = open(count)
      bench.at = AUTUMN - 2 * DAY
      const bare = leased(daily(300))
      const ask: Ask = { ...bare, demand: { ...bare.demand, cost } as Ask['demand'] }
      const spent = new Map<string, number>()
      for (let i = 0; i < 900; i += 1) {
        // Each third starts close to midnight.
        const night = AUTUMN - 2 * DAY + Math.floor(i / 300) * DAY
        const step = i % 300 < 150 ? 2000 : 15 * 60_000
        if (i % 300 === 0) bench.at = Math.max(bench.at, night - 120_000)
        // First in use, then idle: the lease is renewed, then ends.
        for (const ms of [25_000, 25_000, step]) await pass(bench, ms)
        const got = await knock(bench, i * 7, ask, 1 + (i % 9))
        const day = periodOf(berlin, bench.at)
        spent.set(day, (spent.get(day) ?? 0) + got * cost)
      }
      for (const [day, sum] of spent) t.ok(sum <= 300, `${count} instances, ${day}: ${sum}`)
      t.ok(Math.max(...spent.values()) >= 270, `of 300: ${[...spent.values()]}`)
    }
  }
})

t.test('in the process, what was spent keeps its day when the system clock is set', async t => {
  const second = 1000
  const hour = 3600 * second
  /** Steps: how far the clock is set, how much time passes, and how many of ten requests are then admitted. */
  const table: [name: string, start: number, ...steps: [set: number, wait: number, admitted: number][]][] = [
    ['slept over midnight', AUTUMN - 20 * second, [0, 0, 10], [hour, second, 10], [0, hour, 0]],
    [
      'set back over midnight',
      AUTUMN - 3 * second,
      [0, 0, 10],
      [0, 4 * second, 10],
      [-10 * second, second, 0],
      [0, 10 * second, 0],
      [0, 25 * hour, 10],
    ],
    ['set back within a day', AUTUMN + 9 * hour, [0, 0, 10], [-hour, second, 0], [0, 2 * hour, 0]],
    [
      'set forward by years and back again',
      AUTUMN + 9 * hour,
      [0, 0, 10],
      [30_000 * hour, second, 10],
      [-30_000 * hour, second, 0],
      [0, 27 * hour, 10],
    ],
    ['set often', AUTUMN, [0, 0, 10], ...Array<[number, number, number]>(40).fill([second, second, 0])],
  ]
  for (const [name, start, ...steps] of table) {
    const clock = { at: 5000, date: start }
    const now = () => clock.at
    const store = new MemoryStore(
      now,
      'memory',
      undefined,
      wallClock(now, () => clock.date),
    )
    const ask = windows(freshKey(), daily(10))
    for (const [i, [set, wait, expected]] of steps.entries()) {
      clock.at += wait
      clock.date += wait + set
      let admitted = 0
      let resetMs: number | undefined = 0
      for (let i = 0; i < 11; i += 1) {
        const [answer] = store.take([ask]) as [Answer]
        if (answer.granted) admitted += 1
        else resetMs = answer.counts[0]?.resetMs
      }
      t.equal(admitted, expected, `${name}, step ${i + 1}`)
      t.ok(resetMs && resetMs > 0 && resetMs <= longestMs(berlin), `${name}: back in ${resetMs} ms`)
    }
  }
})
