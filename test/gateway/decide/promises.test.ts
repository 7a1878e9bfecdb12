/** The promises of each algorithm (P1 and P2, see docs/policies.md), on every counter store, in virtual time. */
import fc from 'fast-check'
import t from 'tap'
import type { Answer } from '../../../gateway/decide/store/store.js'
import type { Algorithm } from '../../../gateway/types.js'
import { type Admissions, keepsPromise } from './admissions.js'
import { ALGORITHMS, admitted, admittedAt, freshKey, kinds, windowOf, windows } from './counting.js'

const aWindow = (algorithm: Algorithm) =>
  fc
    .record({
      quota: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 36_000 })),
      ms: fc.constantFrom(1000, 60_000),
    })
    .map(({ quota, ms }) => windowOf(quota, ms, algorithm))

/** Evenly distributed; nearly all doubles of fast-check are close to zero. */
const upTo = (highest: number) => fc.nat(10_000).map(n => (n / 10_000) * highest)

/**
 * A gap as a share of the window, requests as a share of the quota, and how many earlier admissions are taken back
 * first.
 */
const aStep = (gap: fc.Arbitrary<number>, part: number) =>
  fc.tuple(gap, upTo(part), fc.oneof(fc.constant(0), fc.nat(2)))
/** Bursts, pauses and the edges of windows; or traffic so dense that its times are rounded. */
const steps = fc.oneof(
  fc.array(aStep(fc.oneof(upTo(0.03), fc.constantFrom(0, 0.02, 0.5, 0.98, 1, 1.02)), 0.3), {
    minLength: 5,
    maxLength: 60,
  }),
  fc.array(aStep(upTo(0.012), 0.02), { minLength: 250, maxLength: 400 }),
)

const PROMISES: Record<Algorithm, string> = {
  'sliding-window': 'no interval of the window’s length ever admits more than the quota (P1)',
  'fixed-window': 'no window ever admits more than the quota',
  'token-bucket': 'no interval ever admits more than the quota plus what is refilled meanwhile',
}

for (const kind of kinds) {
  t.test(`promises of counters ${kind.name}`, async t => {
    const bench = await kind.open(t)
    if (bench === undefined) return

    for (const algorithm of ALGORITHMS) {
      t.test(`${algorithm}: ${PROMISES[algorithm]}, even when charges are given back`, async t => {
        await fc.assert(
          fc.asyncProperty(aWindow(algorithm), steps, async (window, steps) => {
            const asked = windows(freshKey(), window)
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
          const passed = await admittedAt(bench, windows(freshKey(), windowOf(quota, ms, algorithm)), moments)
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
            const asked = windows(freshKey(), window)
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
    }
  })
}
