/** Requests that share one call to Redis. */
import t from 'tap'
import { SharedTurns } from '../../../gateway/decide/store/shared-turns.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'

const windows = [{ name: 'burst', quota: 5, ms: 1000, algorithm: 'sliding-window' }] as const
const ask: Ask = {
  key: 'k',
  demand: { kind: 'windows', windows, lease: false },
  group: 0,
  onStoreError: 'open',
}
const granted: Answer = { granted: true, unavailable: false, store: 'redis', counts: [] }

t.test('the first of a bunch is on its way before the last goes on', async t => {
  const calls: number[] = []
  const turns = new SharedTurns(
    async (_asks, _holder, times) => {
      calls.push(times)
      return Array.from({ length: times }, (_, i) => [{ ...granted, at: i }])
    },
    calls => calls(),
  )
  let turn = 0
  let counting = true
  const count = () => {
    turn += 1
    if (counting) setImmediate(count)
  }
  setImmediate(count)
  const bunch = Array.from({ length: 6 }, async (_, i) => {
    const answers = await turns.take([ask], `holder-${i}`)
    return { turn, at: answers?.[0]?.at }
  })
  const went = await Promise.all(bunch)
  counting = false
  t.strictSame(calls, [6], 'one call asks for all')
  t.strictSame(
    went.map(({ at }) => at),
    [0, 1, 2, 3, 4, 5],
    'each has its own answer',
  )
  const [first, last] = [went[0]?.turn ?? 0, went[5]?.turn ?? 0]
  t.ok(last > first, 'other work has had its turn in between')
})

t.test('where nobody could count, each of them hears so', async t => {
  const turns = new SharedTurns(
    async () => undefined,
    calls => calls(),
  )
  const bunch = Array.from({ length: 5 }, (_, i) => turns.take([ask], `holder-${i}`))
  t.strictSame(await Promise.all(bunch), Array(5).fill(undefined))
})
