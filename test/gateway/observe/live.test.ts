/** The live figures of the moment and of the last hour, in virtual time. */
import t from 'tap'
import { Live } from '../../../gateway/observe/live/live.js'
import { MOST_HOURS } from '../../../gateway/observe/live/tally.js'
import { Metrics } from '../../../gateway/observe/metrics.js'
import type { Finished } from '../../../gateway/verdict.js'
import { randomOf } from '../../helpers/decision-lines.js'
import { matchList } from '../../helpers/lists.js'
import { finished, outcome, reading, rule } from './events.js'

const STEP = 10_000
const HOUR = 360 * STEP

function start() {
  let now = 1_700_000_000_000
  const metrics = new Metrics('1.2.3')
  const live = new Live({
    decisions: metrics.decisions,
    redactor: {
      hash: text => `hash of ${text}`,
      project: ({ id, client }) => (client === undefined ? id : 'client:shown'),
    },
    now: () => now,
  })
  const observers = [metrics.observer(), live.observer()]
  return {
    live,
    see: (event: Finished) => {
      for (const observer of observers) observer.finished(event)
    },
    /** Lets time pass without calling `look`. */
    later(ms: number) {
      now += ms
    },
    /** Lets time pass, with a call of `look` every ten seconds as in a gateway. */
    pass(ms: number) {
      const until = now + ms
      while (now < until) {
        now = Math.min(until, now + STEP)
        live.look()
      }
    },
  }
}

const of = (id: string) => ({ project: { id, plan: 'growth', environment: 'production' } })
const refused = (id: string) =>
  finished({ ...of(id), outcomes: [outcome({ result: 'limited' })], status: 429, source: 'gateway' })

t.test('rates cover the last ten seconds, and fall to zero when nothing arrives', async t => {
  const { live, see, pass } = start()
  for (let i = 0; i < 10; i += 1) {
    for (let j = 0; j < 5; j += 1) see(finished(of('acme')))
    see(refused('acme'))
    pass(1000)
    live.report()
  }
  const { total, rules, projects } = live.report()
  t.same(total, [5, 1, 0, 0, 0])
  matchList(t, rules, [['catch-all', [5, 0, 1, 0, 0], [50, 0, 10, 0, 0]]])
  matchList(t, projects, [{ id: 'acme', plan: 'growth', rates: [5, 1, 0, 0, 0], hour: [50, 10, 0, 0, 0] }])
  pass(STEP)
  t.same(live.report().total, [0, 0, 0, 0, 0])
})

t.test('a burst shows at once, even after a minute without readings', async t => {
  const { live, see, pass } = start()
  pass(60_000)
  for (let i = 0; i < 100; i += 1) see(finished())
  pass(5000)
  for (let i = 0; i < 100; i += 1) see(finished())
  const [allowed = 0] = live.report().total
  t.ok(allowed >= 10 && allowed <= 20, `${allowed} per second`)
})

t.test('requests are counted by their outcome', async t => {
  const { live, see } = start()
  see(finished())
  see(finished({ status: 502, source: 'gateway' }))
  see(finished({ status: 500, source: 'upstream' }))
  see(refused('acme'))
  const closed = outcome({ result: 'unavailable' })
  see(finished({ outcomes: [closed], status: 503, source: 'gateway' }))
  see(finished({ reportOnly: [outcome({ rule: rule({ mode: 'report-only' }), result: 'limited' })] }))
  const [{ hour } = { hour: [] }] = live.report().projects
  t.same(hour, [2, 2, 1, 1, 1])
})

t.test(
  'a rule refuses what it may not let through uncounted, and nothing else that it could not count',
  async t => {
    const { live, see } = start()
    const uncounted = { store: 'none', readings: [] } as const
    const refusal = outcome({ ...uncounted, result: 'unavailable' })
    see(finished({ outcomes: [refusal], status: 503, source: 'gateway' }))
    see(finished({ outcomes: [outcome(uncounted)] }))
    see(finished({ reportOnly: [{ ...refusal, rule: rule({ id: 'watched', mode: 'report-only' }) }] }))
    const hours = live.report().rules.map(([id, , hour]) => [id, hour])
    t.same(hours, [
      ['catch-all', [1, 0, 1, 0, 1]],
      ['watched', [0, 0, 0, 0, 1]],
    ])
  },
)

t.test('an hour is kept in steps of ten seconds, and nothing older', async t => {
  const { live, see, pass } = start()
  see(finished())
  pass(2 * STEP)
  see(refused('acme'))
  pass(STEP)
  const history = live.history({ project: 'acme' })
  t.same(
    history?.points.map(([allowed, refused]) => [allowed, refused]),
    [
      [1, 0],
      [0, 0],
      [0, 1],
    ],
  )
  t.same(live.history({ rule: 'catch-all' })?.points.length, 3)
  t.same(live.history({})?.points.at(-1), [0, 1, 0, 0, 0])
  t.equal(live.history({ rule: 'unheard-of' }), undefined)

  pass(HOUR - STEP)
  t.same(live.report().rules[0]?.[2], [0, 0, 1, 0, 0], 'the first request is forgotten')
  t.equal(live.history({})?.points.length, 360)
  pass(2 * STEP)
  t.same(live.report().rules[0]?.[2], [0, 0, 0, 0, 0])
})

t.test('requests that arrive between two readings are spread over the steps between them', async t => {
  const { live, see, later } = start()
  for (let i = 0; i < 30; i += 1) see(finished())
  later(3 * STEP)
  t.same(
    live.history({})?.points.map(([allowed]) => allowed),
    [10, 10, 10],
  )
})

t.test('a clock that jumps loses at most the hour', async t => {
  const { live, see, later } = start()
  see(finished())
  later(-5 * STEP)
  live.look()
  see(finished())
  t.same(live.report().rules[0]?.[2]?.[0], 2)
  later(1000 * HOUR)
  t.equal(live.history({})?.points.length, 360)
})

t.test(
  'the twenty busiest of Zipf-distributed projects are counted exactly, and the next thirty to 2 %',
  async t => {
    const { live, see, pass } = start()
    const random = randomOf(7)
    const exact = new Map<string, number>()
    const names = 20_000
    const weights = Array.from({ length: names }, (_, i) => 1 / (i + 1))
    const sums: number[] = []
    for (const weight of weights) sums.push((sums.at(-1) ?? 0) + weight)
    const pick = () => {
      const at = random() * (sums.at(-1) as number)
      let [low, high] = [0, names - 1]
      while (low < high) {
        const middle = (low + high) >> 1
        if ((sums[middle] as number) < at) low = middle + 1
        else high = middle
      }
      return low
    }
    for (let i = 0; i < 200_000; i += 1) {
      const id = `project-${pick()}`
      exact.set(id, (exact.get(id) ?? 0) + 1)
      see(finished(of(id)))
      if (i % 3 === 0) see(finished(of(`made-up-${i}`)))
      if (i % 2000 === 0) pass(STEP)
    }
    const told = new Map(live.report().projects.map(({ id, hour }) => [id, hour[0]]))
    const foremost = [...exact].sort(([, one], [, other]) => other - one).slice(0, 50)
    for (const [i, [id, count]] of foremost.entries()) {
      const found = told.get(id) ?? 0
      if (i < 20) t.equal(found, count, id)
      else t.ok(found <= count && found > count * 0.98, `${id}: ${found} of ${count}`)
    }
  },
)

t.test('a few requests that are all refused are not lost among many', async t => {
  const { live, see } = start()
  for (let i = 0; i < 20; i += 1) see(refused('blocked'))
  for (let i = 0; i < 3000; i += 1) for (let j = 0; j < 30; j += 1) see(finished(of(`busy-${i}`)))
  t.match(
    live.report().projects.find(({ id }) => id === 'blocked'),
    { hour: [0, 20] },
  )
})

t.test('memory is bounded, however many projects and rules there are', async t => {
  const { live, see, pass } = start()
  const before = process.memoryUsage().arrayBuffers
  for (let step = 0; step < 5; step += 1) {
    for (let i = 0; i < MOST_HOURS + 2000; i += 1) {
      const outcomes = [outcome({ rule: rule({ id: `rule-${i}` }) })]
      see(finished({ ...of(`host:${step}-${i}.test`), outcomes }))
    }
    pass(STEP)
  }
  const grown = process.memoryUsage().arrayBuffers - before
  t.ok(grown < 40_000_000, `${grown} bytes: an hour is 7,200, looks and counts of a rule 600`)
  const hours = live.report().rules.map(([, , hour]) => hour)
  t.ok(hours.filter(Boolean).length > 1000)
  t.ok(hours.includes(null), 'a rule over the bound has no hour')
})

t.test('the counters closest to their limits are listed while somebody watches', async t => {
  const { live, see, pass } = start()
  const seen = (key: string, used: number, changes = {}) =>
    see(finished({ outcomes: [outcome({ key, readings: [reading(), reading({ used, ...changes })] })] }))
  seen('unwatched', 9)
  t.same(live.report().closest, [])
  for (let i = 0; i < 5000; i += 1) seen(`key-${i}`, (i % 90) / 10)
  seen('nearest', 9.9, { policy: 'catch-all.sustained' })
  seen('slots', 10, { windowMs: undefined })
  const { closest } = live.report()
  t.match(closest[0], {
    rule: 'catch-all',
    policy: 'catch-all.sustained',
    project: 'acme',
    key: 'hash of nearest',
    used: 9.9,
    quota: 10,
    reset_ms: 251,
  })
  t.equal(closest.length, 100)
  t.notOk(closest.some(({ key }) => key === 'hash of slots'))
  seen('nearest', 2)
  t.not(live.report().closest[0]?.key, 'hash of nearest', 'its newest reading counts')
  for (let i = 0; i < 7; i += 1) {
    pass(STEP)
    live.report()
  }
  t.same(live.report().closest, [], 'it is forgotten after a minute')
  seen('nearest', 9)
  pass(20_000)
  seen('unwatched', 9)
  t.same(live.report().closest, [], 'readings made while nobody watched are not listed')
})
