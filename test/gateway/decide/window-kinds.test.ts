/** P1 and P2 for windows of any length and of the calendar, at any cost, wherever they are counted; in virtual time. */
import fc from 'fast-check'
import t from 'tap'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import { longestMs } from '../../../gateway/decide/windows/calendar.js'
import type { Window } from '../../../gateway/demand.js'
import { type Admissions, keepsPromise } from './admissions.js'
import { ALGORITHMS, freshKey, windowOf, windows } from './counting.js'
import { periodOf } from './local-day.js'
import { places } from './places.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const LENGTHS = [1000, 90_000, HOUR, DAY, 7 * DAY, 31 * DAY]

function ofCalendar(quota: number, unit: 'day' | 'week' | 'month', timezone: string): Window {
  const calendar = { unit, timezone }
  return { name: unit, quota, ms: longestMs(calendar), algorithm: 'fixed-window', calendar }
}

const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/Santiago', 'Australia/Lord_Howe')
const quotas = fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 36_000 }))
const aRolling = fc
  .tuple(quotas, fc.constantFrom(...LENGTHS), fc.constantFrom(...ALGORITHMS))
  .map(([quota, ms, algorithm]) => windowOf(quota, ms, algorithm))
const aCalendar = fc
  .tuple(quotas, fc.constantFrom('day', 'week', 'month'), zones)
  .map(([quota, unit, timezone]) => ofCalendar(quota, unit, timezone))

/** Costs as shares of the quota; at least one. */
const costs = fc.oneof(fc.constant(0), fc.constant(0), fc.nat(1000))
const costIn = (share: number, { quota }: Window) =>
  Math.max(1, Math.min(1000, Math.floor((share / 1000) * quota)))

/** Gap and requests as shares of window and quota; the cost of one; how many earlier admissions are taken back. */
const steps = fc.oneof(
  fc.array(
    fc.record({
      gap: fc.oneof(
        fc.constantFrom(0, 0.02, 0.5, 0.98, 1, 1.02),
        fc.nat(300).map(n => n / 10_000),
      ),
      part: fc.nat(300).map(n => n / 1000),
      cost: costs,
      back: fc.constantFrom(0, 0, 0, 1, 2),
    }),
    { minLength: 5, maxLength: 40 },
  ),
  // So dense that times are rounded.
  fc.array(
    fc.record({
      gap: fc.nat(120).map(n => n / 10_000),
      part: fc.nat(20).map(n => n / 1000),
      cost: fc.constant(0),
      back: fc.constant(0),
    }),
    { minLength: 150, maxLength: 220 },
  ),
)

function withCost(ask: Ask, cost: number): Ask {
  return cost === 1 ? ask : { ...ask, demand: { ...ask.demand, cost } as Ask['demand'] }
}

/** Whether a window's promise holds, whatever its kind. */
function promised(admissions: Admissions, window: Window, wasTakenBack: boolean): boolean {
  const { calendar, quota } = window
  if (calendar === undefined) return keepsPromise(admissions, window, wasTakenBack)
  const sums = new Map<string, number>()
  for (const [moment, count] of admissions) {
    const period = periodOf(calendar, moment)
    sums.set(period, (sums.get(period) ?? 0) + count)
  }
  return [...sums.values()].every(sum => sum <= quota)
}

for (const { name, runs, open } of places) {
  t.test(`counters ${name}`, async t => {
    const place = await open(t)
    if (place === undefined) return

    t.test(
      'windows of every kind admit no more than their quotas, at any cost, given back or not',
      async () => {
        const several = fc
          .oneof(
            fc.array(aRolling, { minLength: 1, maxLength: 3 }),
            fc.tuple(aRolling, aCalendar),
            aCalendar.map(one => [one]),
          )
          .map(list => list.map((window, i): Window => ({ ...window, name: `window-${i}` })))
        await fc.assert(
          fc.asyncProperty(several, fc.nat(365), steps, async (list, day, steps) => {
            const asked = windows(freshKey(), ...list)
            const first = list[0] as Window
            const smallest = list.reduce((a, b) => (b.quota < a.quota ? b : a))
            const admissions: Admissions = []
            const granted: { ask: Ask; answer: Answer; cost: number; step: number; gateway: number }[] = []
            let moment = Math.max(place.at, 1_700_000_000_000) + day * DAY
            for (const [i, { gap, part, cost: share, back }] of steps.entries()) {
              moment += Math.ceil(gap * first.ms * 1000) / 1000
              place.at = moment
              for (const { ask, answer, cost, step, gateway } of granted.splice(0, back)) {
                place.stores[gateway % place.stores.length]?.giveBack([ask], [answer])
                ;(admissions[step] as [number, number])[1] -= cost
              }
              const cost = costIn(share, smallest)
              const ask = withCost(asked, cost)
              const times = Math.ceil((part * smallest.quota) / cost)
              const passed = (await place.many(i, ask, times)).filter(answer => answer.granted)
              for (const answer of passed.slice(0, 2)) {
                granted.push({ ask, answer, cost, step: admissions.length, gateway: i })
              }
              admissions.push([moment, passed.length * cost])
            }
            const wasTakenBack = steps.some(({ back }) => back > 0)
            for (const window of list) {
              if (!promised(admissions, window, wasTakenBack))
                throw new Error(JSON.stringify({ window, admissions }))
            }
          }),
          { numRuns: runs },
        )
      },
    )

    t.test('a client pacing evenly at 95 % of the quota is never refused, at any cost (P2)', async t => {
      for (const window of [
        ...LENGTHS.flatMap(ms => ALGORITHMS.map(algorithm => windowOf(130, ms, algorithm))),
        ...(['day', 'week', 'month'] as const).map(unit => ofCalendar(130, unit, 'Europe/Berlin')),
      ]) {
        for (const cost of [1, 10]) {
          const ask = withCost(windows(freshKey(), window), cost)
          const times = Math.floor(window.quota / cost)
          const step = window.ms / (0.95 * times)
          const start = Math.ceil(place.at) + 2 * window.ms
          let refused = 0
          for (let i = 0; i < 2.2 * times; i += 1) {
            place.at = start + Math.ceil(i * step * 1000) / 1000
            const [answer] = await place.many(i, ask, 1)
            if (!answer?.granted) refused += 1
          }
          const { ms, calendar, algorithm } = window
          t.equal(refused, 0, `${calendar?.unit ?? `${algorithm}, ${ms} ms`}, cost ${cost}`)
        }
      }
    })

    t.test(
      'a greedy client gets 95 % of its quotas, and a client that waits as told is admitted',
      async t => {
        for (const window of [
          ...LENGTHS.flatMap(ms => ALGORITHMS.map(algorithm => windowOf(100, ms, algorithm))),
          ...(['day', 'week', 'month'] as const).map(unit => ofCalendar(100, unit, 'America/Santiago')),
        ]) {
          for (const cost of [1, 7]) {
            const ask = withCost(windows(freshKey(), window), cost)
            const most = Math.floor(window.quota / cost)
            const [n, start] = [3, Math.ceil(place.at) + 2 * window.ms]
            place.at = start
            let sum = 0
            for (let turn = 0; place.at < start + n * window.ms; turn += 1) {
              const answers = await place.many(turn, ask, most + 1)
              const passed = answers.filter(({ granted }) => granted).length
              if (turn > 0 && passed === 0) t.fail(`waited in vain: ${JSON.stringify({ window, cost })}`)
              sum += passed
              const wait = answers.at(-1)?.counts[0]?.resetMs ?? 0
              place.at += Math.max(wait, Math.ceil(window.ms / 400))
            }
            t.ok(
              sum >= 0.95 * n * most,
              `${window.calendar?.unit ?? `${window.algorithm} ${window.ms}`}: ${sum}`,
            )
          }
        }
      },
    )
  })
}
