/** Requests that share one call to Redis. */
import t, { type Test } from 'tap'
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

/** After calls of these lengths in ms, how many turns of the event loop lie between the last call's six requests. */
async function turnsBetween(t: Test, lengths: readonly number[]): Promise<number> {
  const calls: number[] = []
  let now = 0
  const turns = new SharedTurns(
    async (_asks, _holder, times) => {
      now += lengths[calls.length] as number
      calls.push(times)
      return Array.from({ length: times }, (_, i) => [{ ...granted, at: i }])
    },
    calls => calls(),
    () => now,
  )
  for (let i = 1; i < lengths.length; i += 1) await turns.take([ask], `earlier-${i}`)
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
  t.equal(calls.at(-1), 6, 'one call asks for all six')
  t.strictSame(
    went.map(({ at }) => at),
    [0, 1, 2, 3, 4, 5],
    'each gets its own answer',
  )
  return (went[5]?.turn ?? 0) - (went[0]?.turn ?? 0)
}

t.test(
  'while every call is long, other work gets a turn between the first and the last request of one',
  async t => {
    t.ok((await turnsBetween(t, [2])) > 0)
    t.ok((await turnsBetween(t, Array(100).fill(12))) > 0)
  },
)

t.test('while some calls are short, all requests of a long one go on in the same turn', async t => {
  t.equal(await turnsBetween(t, [0.5]), 0)
  t.equal(await turnsBetween(t, [...Array(31).fill(12), 0.5, ...Array(31).fill(12)]), 0)
})

t.test('a short call counts for a while only', async t => {
  t.ok((await turnsBetween(t, [0.5, ...Array(64).fill(12)])) > 0)
})

t.test('when the store cannot count, every waiting request gets undefined', async t => {
  const turns = new SharedTurns(
    async () => undefined,
    calls => calls(),
  )
  const bunch = Array.from({ length: 5 }, (_, i) => turns.take([ask], `holder-${i}`))
  t.strictSame(await Promise.all(bunch), Array(5).fill(undefined))
})
