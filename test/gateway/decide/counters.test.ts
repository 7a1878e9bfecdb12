/** The contract of a counter store, run on every store there is, in virtual time. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { RedisStore } from '../../../gateway/decide/store/redis.js'
import type { Answer, Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import type { Window } from '../../../gateway/types.js'
import { redisUrl } from '../../helpers/redis.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** A store whose time is what the test says, in ms. */
interface Bench {
  readonly store: CounterStore
  at: number
}

interface Kind {
  readonly name: string
  open(t: Test): Promise<Bench | undefined>
  /** Largest quota worth its round trips. */
  readonly largest: number
  readonly runs: number
}

const START = 1_700_000_000_000

const kinds: readonly Kind[] = [
  {
    name: 'in process',
    largest: 36_000,
    runs: 30,
    open: async () => {
      const clock = { at: START }
      return Object.assign(clock, { store: new MemoryStore(() => clock.at) })
    },
  },
  {
    name: 'on Redis',
    largest: 2_000,
    runs: 15,
    open: async t => {
      const url = await redisUrl(t)
      if (url === undefined) return undefined
      const clock = { at: START }
      const store = new RedisStore({ url, log: quiet, clock: () => Math.round(clock.at * 1000) })
      t.teardown(() => store.close())
      await store.answers(5000)
      return Object.assign(clock, { store })
    },
  },
]

let keys = 0
const freshKey = () => `test:{k${++keys}}`

function windows(key: string, ...list: readonly Window[]): Ask {
  return { key, demand: { kind: 'windows', windows: list, lease: false }, group: 0, onStoreError: 'local' }
}
function slots(key: string, max: number): Ask {
  return { key, demand: { kind: 'slots', max, ttlMs: 15_000 }, group: 0, onStoreError: 'local' }
}
const burst = (quota: number): Window => ({ name: 'burst', quota, ms: 1000, algorithm: 'sliding-window' })
const sustained = (quota: number): Window => ({
  name: 'sustained',
  quota,
  ms: 60_000,
  algorithm: 'sliding-window',
})

/** Asks once at each moment and returns the moments that were admitted; the moments must rise. */
async function admittedAt(bench: Bench, ask: Ask, moments: readonly number[]): Promise<number[]> {
  const answers = moments.map(moment => {
    bench.at = moment
    return bench.store.take([ask], 'holder')
  })
  const granted = (await Promise.all(answers)).map(([answer]) => (answer as Answer).granted)
  return moments.filter((_, i) => granted[i])
}

/** Knocks at each moment, and where it is let in takes whatever is there. */
async function greedy(bench: Bench, ask: Ask, moments: readonly number[], quota: number): Promise<number[]> {
  const admitted: number[] = []
  for (const moment of moments) {
    const first = await admittedAt(bench, ask, [moment])
    if (first.length === 0) continue
    admitted.push(moment, ...(await admittedAt(bench, ask, Array<number>(quota).fill(moment))))
  }
  return admitted
}

/** The most admissions that any interval of the window's length holds. */
function most(admitted: readonly number[], windowMs: number): number {
  let first = 0
  let highest = 0
  for (const [last, moment] of admitted.entries()) {
    while ((admitted[first] as number) + windowMs <= moment) first += 1
    highest = Math.max(highest, last - first + 1)
  }
  return highest
}

for (const kind of kinds) {
  t.test(`counters ${kind.name}`, async t => {
    const bench = await kind.open(t)
    if (bench === undefined) return
    const ask = (key: string, ...list: readonly Window[]) => windows(key, ...list)
    const aWindow = fc
      .record({
        quota: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: kind.largest })),
        ms: fc.constantFrom(1000, 60_000),
      })
      .map(({ quota, ms }): Window => ({ name: 'window', quota, ms, algorithm: 'sliding-window' }))

    t.test('no interval of the window’s length ever admits more than the quota (P1)', async t => {
      // Gaps as shares of the window, clustered: bursts, pauses and edges of parts.
      const gap = fc.oneof(
        fc.constant(0),
        fc.double({ min: 0, max: 0.03, noNaN: true }),
        fc.constantFrom(0.02, 0.5, 0.98, 1, 1.02),
      )
      await fc.assert(
        fc.asyncProperty(
          aWindow,
          fc.array(fc.tuple(gap, fc.integer({ min: 1, max: 30 })), { minLength: 5, maxLength: 60 }),
          async (window, steps) => {
            const scale = Math.max(1, Math.ceil(window.quota / 100))
            const moments: number[] = []
            let moment = bench.at
            for (const [share, count] of steps) {
              moment += Math.ceil(share * window.ms * 1000) / 1000
              for (let i = 0; i < count * scale; i++) moments.push(moment)
            }
            const admitted = await admittedAt(bench, ask(freshKey(), window), moments)
            t.ok(most(admitted, window.ms) <= window.quota)
          },
        ),
        { numRuns: kind.runs },
      )
    })

    t.test('a client pacing evenly at 95 % of the quota is never refused (P2)', async t => {
      await fc.assert(
        fc.asyncProperty(aWindow, fc.double({ min: 0, max: 1, noNaN: true }), async (window, phase) => {
          const step = window.ms / (0.95 * window.quota)
          const start = bench.at + Math.ceil(phase * window.ms)
          const moments = Array.from(
            { length: Math.ceil(2.5 * window.quota) + 3 },
            (_, i) => start + Math.ceil(i * step * 1000) / 1000,
          )
          const admitted = await admittedAt(bench, ask(freshKey(), window), moments)
          t.equal(admitted.length, moments.length, `${window.quota} per ${window.ms} ms`)
        }),
        { numRuns: kind.runs / 3 },
      )
    })

    t.test(
      'a greedy client gets at least 95 % of n quotas over n windows from its first request (P2)',
      async t => {
        for (const quota of [1, 2, 10, 64, 65, 300, kind.largest]) {
          for (const n of [1, 2, 5, 12]) {
            const ms = quota % 2 === 0 ? 1000 : 60_000
            const window: Window = { name: 'window', quota, ms, algorithm: 'sliding-window' }
            const start = bench.at + 60_000 + Math.round(Math.random() * 60_000)
            const knocks = Array.from({ length: n * 200 }, (_, i) => start + (i * window.ms) / 200)
            const admitted = await greedy(bench, ask(freshKey(), window), knocks, quota)
            t.ok(admitted.length >= 0.95 * n * quota, `${admitted.length} of ${n} x ${quota}`)
            t.ok(most(admitted, window.ms) <= quota)
          }
        }
      },
    )

    t.test('burst and sustained are charged together or not at all', async t => {
      const key = freshKey()
      const pair = ask(key, burst(5), sustained(15))
      const start = bench.at + 120_000
      const rounds = [0, 1100, 2200, 3300].flatMap(offset => Array<number>(10).fill(start + offset))
      const admitted = await admittedAt(bench, pair, rounds)
      t.strictSame(
        [0, 1100, 2200, 3300].map(offset => admitted.filter(moment => moment === start + offset).length),
        [5, 5, 5, 0],
        'refusals by burst never used up the minute',
      )
      const [answer] = await bench.store.take([pair], 'holder')
      t.match(answer, {
        granted: false,
        counts: [
          { used: 0, violated: false },
          { used: 15, left: 0, violated: true },
        ],
      })
    })

    t.test('a refusal says when the request could pass, to the moment', async t => {
      const pair = ask(freshKey(), burst(2), sustained(3))
      const start = bench.at + 120_000
      await admittedAt(bench, pair, [start, start + 400, start + 5000])
      bench.at = start + 5100
      const [refused] = await bench.store.take([pair], 'holder')
      const wait = refused?.counts[1]?.resetMs as number
      t.equal(Math.round(wait), 54_900)
      t.equal((await admittedAt(bench, pair, [start + 5100 + wait - 1, start + 5100 + wait])).length, 1)
    })

    t.test('a window that was just opened resets in its length, not in a rest more', async t => {
      for (let i = 0; i < 200; i++) {
        bench.at += 61_000 + Math.random()
        const [first] = await bench.store.take([ask(freshKey(), burst(10), sustained(300))], 'holder')
        t.strictSame(
          first?.counts.map(({ resetMs }) => resetMs),
          [1000, 60_000],
        )
      }
    })

    t.test('raising or lowering a quota applies at once and keeps what was spent', async t => {
      const key = freshKey()
      const start = bench.at + 120_000
      t.equal((await admittedAt(bench, ask(key, sustained(10)), Array<number>(20).fill(start))).length, 10)
      t.equal((await admittedAt(bench, ask(key, sustained(100)), Array<number>(200).fill(start))).length, 90)
      t.equal(
        (await admittedAt(bench, ask(key, sustained(20)), Array<number>(5).fill(start + 1000))).length,
        0,
      )
      const [lowered] = await bench.store.take([ask(key, sustained(20))], 'holder')
      t.match(lowered?.counts[0], { used: 100, left: 0, violated: true })
    })

    t.test('groups are judged apart: a refused one consumes nothing and changes no other', async t => {
      bench.at += 120_000
      const enforced = ask(freshKey(), sustained(2))
      const watched = { ...ask(freshKey(), sustained(1)), group: 1 }
      const seen = []
      for (let i = 0; i < 4; i++)
        seen.push((await bench.store.take([enforced, watched], 'holder')).map(answer => answer.granted))
      t.strictSame(seen, [
        [true, true],
        [true, false],
        [false, false],
        [false, false],
      ])
    })

    t.test('a slot and a window of one group stand or fall together', async t => {
      bench.at += 120_000
      const window = ask(freshKey(), sustained(5))
      const slot = slots(freshKey(), 1)
      const first = await bench.store.take([window, slot], 'first')
      const second = await bench.store.take([window, slot], 'second')
      t.strictSame(
        first.map(answer => answer.granted),
        [true, true],
      )
      t.strictSame(
        second.map(answer => answer.granted),
        [false, false],
      )
      t.match(second, [
        { counts: [{ used: 1, violated: false }] },
        { counts: [{ used: 1, left: 0, violated: true }] },
      ])
    })

    t.test('a slot given back can be taken again, and giving it back twice frees only one', async t => {
      const slot = slots(freshKey(), 2)
      const [first] = await bench.store.take([slot], 'first')
      const [second] = await bench.store.take([slot], 'second')
      t.match((await bench.store.take([slot], 'third'))[0], { granted: false, counts: [{ used: 2 }] })
      first?.release?.()
      first?.release?.()
      t.match((await bench.store.take([slot], 'third'))[0], { granted: true, counts: [{ used: 2 }] })
      t.equal((await bench.store.take([slot], 'fourth'))[0]?.granted, false)
      second?.release?.()
    })
  })
}
