/** How long a request waits for its client. */
import fc from 'fast-check'
import t from 'tap'
import { LEAST_RATE, TransferRate } from '../../../gateway/http1/transfer-rate.js'

const IDLE_MS = 60_000

/** How long a client is waited for that moves `bytes` every `everyMs`, up to an hour. */
function patience(bytes: number, everyMs: number): number {
  const pace = new TransferRate(IDLE_MS)
  for (let now = 0; now < 3_600_000; now += everyMs) {
    const deadline = pace.wait(now)
    if (deadline <= now + everyMs) return deadline
    pace.moved(bytes, now + everyMs)
  }
  return Number.POSITIVE_INFINITY
}

t.test('a client that does nothing is waited for as long as a pause may last', async t => {
  t.equal(patience(0, 100), IDLE_MS)
})

t.test('a byte now and then does not keep a request alive', async t => {
  for (const everyMs of [200, 1_000, 40_000]) t.ok(patience(1, everyMs) < IDLE_MS + 2_000, `${everyMs}`)
})

t.test('a slow line passes, in small steps or large ones, and so do pauses', async t => {
  for (const [bytes, everyMs] of [
    [1_000, 1_000],
    [LEAST_RATE, 1_000],
    [1, 4],
    [14_600, 50_000],
  ] as const) {
    t.equal(patience(bytes, everyMs), Number.POSITIVE_INFINITY, `${bytes} every ${everyMs} ms`)
  }
})

t.test('the time in which the client is not waited for is free', async t => {
  const pace = new TransferRate(IDLE_MS)
  t.equal(pace.wait(0), IDLE_MS)
  pace.rest(10_000)
  t.equal(pace.waitsSince, undefined)
  t.equal(pace.wait(1_000_000), 1_000_000 + IDLE_MS - 10_000)
})

t.test('nobody is waited for longer than a pause and the time of the bytes at the least rate', async () => {
  const step = fc.record({ ms: fc.nat(70_000), bytes: fc.nat(20_000), rests: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step), steps => {
      const pace = new TransferRate(IDLE_MS)
      let now = 0
      let waited = 0
      let moved = 0
      for (const { ms, bytes, rests } of steps) {
        const deadline = pace.wait(now)
        if (deadline < now || deadline > now + IDLE_MS) return false
        if (deadline <= now + ms)
          return waited + (deadline - now) <= IDLE_MS + (moved * 1000) / LEAST_RATE + 0.01
        now += ms
        waited += ms
        moved += bytes
        pace.moved(bytes, now)
        if (rests) pace.rest(now)
      }
      return true
    }),
  )
})
