/** The contract of a counter store, run on every store there is, in virtual time. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { RedisStore } from '../../../gateway/decide/store/redis.js'
import type { Answer, Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import type { Algorithm, Window } from '../../../gateway/types.js'
import { redisUrl } from '../../helpers/redis.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** A store whose time is what the test says, in ms. */
interface Bench {
  readonly store: CounterStore
  at: number
  /** Asks `times` at once; the answers in their order. */
  many(ask: Ask, times: number): Promise<Answer[]>
}

interface Kind {
  readonly name: string
  open(t: Test): Promise<Bench | undefined>
  readonly runs: number
}

const START = 1_700_000_000_000
const ALGORITHMS: Algorithm[] = ['sliding-window', 'fixed-window', 'token-bucket']

const kinds: readonly Kind[] = [
  {
    name: 'in process',
    runs: 12,
    open: async () => {
      const clock = { at: START }
      const store = new MemoryStore(() => clock.at)
      const many = async (ask: Ask, times: number) =>
        Array.from({ length: times }, () => store.take([ask])[0] as Answer)
      return Object.assign(clock, { store, many })
    },
  },
  {
    name: 'on Redis',
    runs: 20,
    open: async t => {
      const url = await redisUrl(t)
      if (url === undefined) return undefined
      const clock = { at: START }
      const store = new RedisStore({ url, log: quiet, clock: () => Math.round(clock.at * 1000) })
      t.teardown(() => store.close())
      await store.answers(5000)
      const many = async (ask: Ask, times: number) =>
        (await store.takeMany([ask], 'holder', times)).map(([answer]) => answer as Answer)
      return Object.assign(clock, { store, many })
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
const windowOf = (quota: number, ms: number, algorithm: Algorithm = 'sliding-window'): Window => ({
  name: ms === 1000 ? 'burst' : 'sustained',
  quota,
  ms,
  algorithm,
})
const burst = (quota: number) => windowOf(quota, 1000)
const sustained = (quota: number) => windowOf(quota, 60_000)

/** Asks once at each moment and returns the moments that were admitted; the moments must rise. */
async function admittedAt(bench: Bench, ask: Ask, moments: readonly number[]): Promise<number[]> {
  const answers = moments.map(moment => {
    bench.at = moment
    return bench.store.take([ask], 'holder')
  })
  const granted = (await Promise.all(answers)).map(([answer]) => (answer as Answer).granted)
  return moments.filter((_, i) => granted[i])
}

/** How many of `times` requests at `moment` are admitted. */
async function admitted(bench: Bench, ask: Ask, moment: number, times: number): Promise<number> {
  bench.at = moment
  return (await bench.many(ask, times)).filter(answer => answer.granted).length
}

/** Admissions as moment and count; moments rise. */
type Admissions = [moment: number, count: number][]

/** The most admissions that any interval of the window's length holds. */
function most(admissions: Admissions, ms: number): number {
  let first = 0
  let held = 0
  let highest = 0
  for (const [moment, count] of admissions) {
    held += count
    for (let [oldest, gone] = admissions[first] as [number, number]; oldest + ms <= moment; ) {
      held -= gone
      first += 1
      ;[oldest, gone] = admissions[first] as [number, number]
    }
    highest = Math.max(highest, held)
  }
  return highest
}

/** The most admissions of a window that begins with a request and ends whole. */
function mostOfOne(admissions: Admissions, ms: number): number {
  let begin = Number.NEGATIVE_INFINITY
  let held = 0
  let highest = 0
  for (const [moment, count] of admissions) {
    if (count === 0) continue
    if (begin + ms <= moment) {
      begin = moment
      held = 0
    }
    held += count
    highest = Math.max(highest, held)
  }
  return highest
}

/** The most that any interval admitted beyond what flows into the bucket meanwhile. */
function mostBeyondFlow(admissions: Admissions, { quota, ms }: Window): number {
  let taken = 0
  let lowest = Number.POSITIVE_INFINITY
  let highest = 0
  for (const [moment, count] of admissions) {
    const flowed = ((moment - START) * quota) / ms
    lowest = Math.min(lowest, taken - flowed)
    taken += count
    highest = Math.max(highest, taken - flowed - lowest)
  }
  return highest
}

/** What each algorithm promises of any course of events. */
function keepsPromise(admissions: Admissions, window: Window, wasTakenBack = false): boolean {
  switch (window.algorithm) {
    case 'sliding-window':
      return most(admissions, window.ms) <= window.quota
    case 'fixed-window':
      // A window goes on when the request that began it is taken back, but nobody sees then when it began.
      return wasTakenBack
        ? most(admissions, window.ms) <= 2 * window.quota
        : mostOfOne(admissions, window.ms) <= window.quota
    case 'token-bucket':
      return mostBeyondFlow(admissions, window) <= window.quota + 1e-3
  }
}

const aWindow = (algorithm: Algorithm) =>
  fc
    .record({
      quota: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 36_000 })),
      ms: fc.constantFrom(1000, 60_000),
    })
    .map(({ quota, ms }) => windowOf(quota, ms, algorithm))

/** Evenly spread, as doubles of fast-check are not: those are nearly all next to nothing. */
const upTo = (highest: number) => fc.nat(10_000).map(n => (n / 10_000) * highest)

/** A gap as a share of the window, how many ask then as a share of the quota, and how many of those admitted before are taken back first. */
const aStep = (gap: fc.Arbitrary<number>, part: number) =>
  fc.tuple(gap, upTo(part), fc.oneof(fc.constant(0), fc.nat(2)))
/** Bursts, pauses and edges of parts; or traffic so dense that its times are rounded. */
const steps = fc.oneof(
  fc.array(aStep(fc.oneof(upTo(0.03), fc.constantFrom(0, 0.02, 0.5, 0.98, 1, 1.02)), 0.3), {
    minLength: 5,
    maxLength: 60,
  }),
  fc.array(aStep(upTo(0.012), 0.02), { minLength: 250, maxLength: 400 }),
)

for (const kind of kinds) {
  t.test(`counters ${kind.name}`, async t => {
    const bench = await kind.open(t)
    if (bench === undefined) return
    const ask = (key: string, ...list: readonly Window[]) => windows(key, ...list)

    for (const algorithm of ALGORITHMS) {
      const promises = {
        'sliding-window': 'no interval of the window’s length ever admits more than the quota (P1)',
        'fixed-window': 'no window that a request began ever admits more than the quota',
        'token-bucket': 'no interval ever admits more than the quota and what flows in meanwhile',
      }
      t.test(`${algorithm}: ${promises[algorithm]}, also when requests are taken back`, async t => {
        await fc.assert(
          fc.asyncProperty(aWindow(algorithm), steps, async (window, steps) => {
            const asked = ask(freshKey(), window)
            const admissions: Admissions = []
            const granted: { answer: Answer; step: number }[] = []
            let moment = bench.at + 2 * window.ms
            for (const [share, part, back] of steps) {
              moment += Math.ceil(share * window.ms * 1000) / 1000
              bench.at = moment
              for (const { answer, step } of granted.splice(0, back)) {
                bench.store.giveBack([asked], [answer])
                ;(admissions[step] as [number, number])[1] -= 1
              }
              const answers = await bench.many(asked, Math.ceil(part * window.quota))
              const passed = answers.filter(answer => answer.granted)
              granted.push(...passed.slice(0, 3).map(answer => ({ answer, step: admissions.length })))
              admissions.push([moment, passed.length])
            }
            t.ok(
              keepsPromise(
                admissions,
                window,
                steps.some(([, , back]) => back > 0),
              ),
              JSON.stringify({ window, admissions }),
            )
          }),
          { numRuns: kind.runs },
        )
      })

      t.test(`${algorithm}: a client pacing evenly at 95 % of the quota is never refused (P2)`, async t => {
        for (const [quota, ms] of [
          [1, 1000],
          [3, 60_000],
          [64, 1000],
          [65, 60_000],
          [170, 1000],
        ] as const) {
          const step = ms / (0.95 * quota)
          const start = bench.at + 120_000 + Math.random() * ms
          const moments = Array.from(
            { length: Math.ceil(2.5 * quota) + 3 },
            (_, i) => start + Math.ceil(i * step * 1000) / 1000,
          )
          const passed = await admittedAt(bench, ask(freshKey(), windowOf(quota, ms, algorithm)), moments)
          t.equal(passed.length, moments.length, `${quota} per ${ms} ms`)
        }
      })

      t.test(
        `${algorithm}: a greedy client gets at least 95 % of n quotas over n windows from its first request (P2)`,
        async t => {
          for (const [quota, ms, n] of [
            [1, 1000, 12],
            [2, 60_000, 5],
            [10, 1000, 1],
            [64, 60_000, 2],
            [65, 1000, 12],
            [300, 60_000, 5],
            [36_000, 60_000, 3],
          ] as const) {
            const window = windowOf(quota, ms, algorithm)
            const asked = ask(freshKey(), window)
            const start = bench.at + 120_000 + Math.round(Math.random() * 60_000)
            const admissions: Admissions = []
            for (let i = 0; i < n * 200; i++) {
              const moment = start + (i * ms) / 200
              bench.at = moment
              const [first] = await bench.many(asked, 1)
              if (!first?.granted) continue
              const rest = await admitted(bench, asked, moment, (first.counts[0]?.left ?? 0) + 1)
              admissions.push([moment, 1 + rest])
            }
            const sum = admissions.reduce((sum, [, count]) => sum + count, 0)
            t.ok(sum >= 0.95 * n * quota, `${sum} of ${n} x ${quota}`)
            t.ok(keepsPromise(admissions, window))
          }
        },
      )

      t.test(`${algorithm}: a refusal says when the request could pass, to the moment`, async t => {
        for (const quota of [1, 7, 300, 36_000]) {
          const asked = ask(freshKey(), windowOf(quota, 60_000, algorithm))
          const start = bench.at + 180_000
          await admitted(bench, asked, start, Math.ceil(quota / 2))
          await admitted(bench, asked, start + 333, quota)
          const [refused] = await bench.many(asked, 1)
          const { violated, resetMs = 0 } = refused?.counts[0] ?? {}
          t.ok(violated)
          t.equal(await admitted(bench, asked, start + 333 + 0.99 * resetMs, 1), 0, `${quota}: not before`)
          t.equal(await admitted(bench, asked, start + 333 + resetMs, 1), 1, `${quota}: then`)
        }
      })

      t.test(`${algorithm}: what is taken back is there for the next, once`, async t => {
        const asked = ask(freshKey(), windowOf(5, 1000, algorithm), windowOf(20, 60_000, algorithm))
        bench.at += 120_000
        const answers = await bench.many(asked, 6)
        t.strictSame(
          answers.map(answer => answer.granted),
          [true, true, true, true, true, false],
        )
        bench.store.giveBack([asked], answers.slice(4, 5))
        bench.store.giveBack([asked], answers.slice(5))
        t.match(await bench.many(asked, 2), [
          { granted: true, counts: [{ used: 5 }, { used: 5 }] },
          { granted: false },
        ])
        const [last] = await bench.many(ask(freshKey(), windowOf(1, 1000, algorithm)), 1)
        bench.at += 1000
        bench.store.giveBack([asked], [last as Answer])
        t.equal(await admitted(bench, asked, bench.at + 1000, 6), 5, 'long after it is too late')
      })

      t.test(`${algorithm}: raising or lowering a quota keeps what was spent`, async t => {
        const key = freshKey()
        const start = bench.at + 120_000
        const of = (quota: number) => ask(key, windowOf(quota, 60_000, algorithm))
        t.equal(await admitted(bench, of(10), start, 20), 10)
        t.equal(await admitted(bench, of(100), start, 200), 90)
        t.equal(await admitted(bench, of(20), start + 1000, 5), 0)
        t.match(await bench.many(of(20), 1), [{ counts: [{ left: 0, violated: true }] }])
      })

      for (const other of ALGORITHMS.filter(other => other !== algorithm)) {
        t.test(`an edit from ${algorithm} to ${other} applies at once and forgets no token`, async t => {
          for (const count of [1, 7, 10]) {
            const key = freshKey()
            const start = bench.at + 180_000
            const before = ask(key, windowOf(10, 1000, algorithm), windowOf(10, 60_000, algorithm))
            for (let i = 0; i < count; i++) await admitted(bench, before, start + 2 * i, 1)
            const after = ask(key, windowOf(10, 1000, other), windowOf(10, 60_000, other))
            t.equal(await admitted(bench, after, start + 30, 20), 10 - count, `${count} spent`)
            t.equal(await admitted(bench, after, start + 180_000, 20), 10, 'and all comes back')
          }
        })
      }
    }

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
