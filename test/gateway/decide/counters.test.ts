/** The contract of a counter store, run on every store there is, in virtual time. */
import t from 'tap'
import type { Answer } from '../../../gateway/decide/store/store.js'
import {
  ALGORITHMS,
  admitted,
  admittedAt,
  burst,
  freshKey,
  kinds,
  slots,
  sustained,
  windowOf,
  windows,
} from './counting.js'

for (const kind of kinds) {
  t.test(`counters ${kind.name}`, async t => {
    const bench = await kind.open(t)
    if (bench === undefined) return

    for (const algorithm of ALGORITHMS) {
      t.test(`${algorithm}: a refusal gives the exact moment at which the request could pass`, async t => {
        for (const quota of [1, 7, 300, 36_000]) {
          const asked = windows(freshKey(), windowOf(quota, 60_000, algorithm))
          const start = bench.at + 180_000
          await admitted(bench, asked, start, Math.ceil(quota / 2))
          await admitted(bench, asked, start + 333, quota)
          const [refused] = await bench.many(asked, 1)
          const { violated, resetMs = 0 } = refused?.counts[0] ?? {}
          t.ok(violated)
          t.equal(
            await admitted(bench, asked, start + 333 + 0.99 * resetMs, 1),
            0,
            `${quota}: refused just before that moment`,
          )
          t.equal(
            await admitted(bench, asked, start + 333 + resetMs, 1),
            1,
            `${quota}: admitted at that moment`,
          )
        }
      })

      t.test(`${algorithm}: a charge that is given back is available again, once`, async t => {
        const asked = windows(freshKey(), windowOf(5, 1000, algorithm), windowOf(20, 60_000, algorithm))
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
        const [last] = await bench.many(windows(freshKey(), windowOf(1, 1000, algorithm)), 1)
        bench.at += 1000
        bench.store.giveBack([asked], [last as Answer])
        t.equal(
          await admitted(bench, asked, bench.at + 1000, 6),
          5,
          'a charge given back after its window has ended changes nothing',
        )
      })

      t.test(`${algorithm}: raising or lowering a quota keeps what was spent`, async t => {
        const key = freshKey()
        const start = bench.at + 120_000
        const of = (quota: number) => windows(key, windowOf(quota, 60_000, algorithm))
        t.equal(await admitted(bench, of(10), start, 20), 10)
        t.equal(await admitted(bench, of(100), start, 200), 90)
        t.equal(await admitted(bench, of(20), start + 1000, 5), 0)
        t.match(await bench.many(of(20), 1), [{ counts: [{ left: 0, violated: true }] }])
      })

      for (const other of ALGORITHMS.filter(other => other !== algorithm)) {
        t.test(`changing ${algorithm} to ${other} applies at once and keeps what was spent`, async t => {
          for (const count of [1, 7, 10]) {
            const key = freshKey()
            const start = bench.at + 180_000
            const before = windows(key, windowOf(10, 1000, algorithm), windowOf(10, 60_000, algorithm))
            for (let i = 0; i < count; i++) await admitted(bench, before, start + 2 * i, 1)
            const after = windows(key, windowOf(10, 1000, other), windowOf(10, 60_000, other))
            t.equal(await admitted(bench, after, start + 30, 20), 10 - count, `${count} spent`)
            t.equal(
              await admitted(bench, after, start + 180_000, 20),
              10,
              'all is available again after a full window',
            )
          }
        })
      }
    }

    t.test('burst and sustained are charged together or not at all', async t => {
      const key = freshKey()
      const pair = windows(key, burst(5), sustained(15))
      const start = bench.at + 120_000
      const rounds = [0, 1100, 2200, 3300].flatMap(offset => Array<number>(10).fill(start + offset))
      const admitted = await admittedAt(bench, pair, rounds)
      t.strictSame(
        [0, 1100, 2200, 3300].map(offset => admitted.filter(moment => moment === start + offset).length),
        [5, 5, 5, 0],
        'refusals by burst never use up the minute',
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

    t.test('a window that has just opened resets after exactly its length', async t => {
      for (let i = 0; i < 200; i++) {
        bench.at += 61_000 + Math.random()
        const [first] = await bench.store.take([windows(freshKey(), burst(10), sustained(300))], 'holder')
        t.strictSame(
          first?.counts.map(({ resetMs }) => resetMs),
          [1000, 60_000],
        )
      }
    })

    t.test('groups are judged separately, and a refused group consumes nothing', async t => {
      bench.at += 120_000
      const enforced = windows(freshKey(), sustained(2))
      const watched = { ...windows(freshKey(), sustained(1)), group: 1 }
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

    t.test('a slot and a window of one group are granted or refused together', async t => {
      bench.at += 120_000
      const window = windows(freshKey(), sustained(5))
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

    t.test('a released slot can be taken again, and releasing it twice frees one slot only', async t => {
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
