/** Requests that share one call to Redis. */
import t, { type Test } from 'tap'
import { CoalescedCalls } from '../../../gateway/decide/fallback/coalesced-calls.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import { sleep } from '../../helpers/wait.js'

const windows = [{ name: 'burst', quota: 5, ms: 1000, algorithm: 'sliding-window' }] as const
const ask: Ask = {
  key: 'k',
  demand: { kind: 'windows', windows, lease: false },
  group: 0,
  onStoreError: 'open',
}
const granted: Answer = { granted: true, unavailable: false, store: 'redis', counts: [] }

/** After a call of `ms`, in how many turns of the event loop the first and the last of six waiting requests went on. */
async function bunchAfter(t: Test, ms: number): Promise<readonly [first: number, last: number]> {
  const calls: number[] = []
  const turns = new CoalescedCalls(
    async (_asks, _holder, times) => {
      calls.push(times)
      if (ms > 0) await sleep(ms)
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
    const [answer] = (await turns.take([ask], `holder-${i}`)) ?? []
    return { turn, at: answer?.granted ? answer.at : undefined }
  })
  const went = await Promise.all(bunch)
  counting = false
  t.strictSame(calls, [6], 'one call asks for all six')
  t.strictSame(
    went.map(({ at }) => at),
    [0, 1, 2, 3, 4, 5],
    'each gets its own answer',
  )
  return [went[0]?.turn ?? 0, went[5]?.turn ?? 0]
}

t.test('after a long call other work gets a turn between the first and the last of its requests', async t => {
  const [first, last] = await bunchAfter(t, 20)
  t.ok(last > first, 'other work has had a turn in between')
})

t.test('after a short call all its requests go on in the same turn', async t => {
  const [first, last] = await bunchAfter(t, 0)
  t.equal(last, first)
})

t.test('when the store cannot count, every waiting request gets undefined', async t => {
  const turns = new CoalescedCalls(
    async () => undefined,
    calls => calls(),
  )
  const bunch = Array.from({ length: 5 }, (_, i) => turns.take([ask], `holder-${i}`))
  t.strictSame(await Promise.all(bunch), Array(5).fill(undefined))
})
