import fc from 'fast-check'
import t from 'tap'
import { spreadWait } from '../../../gateway/forward/reject.js'

const keys = fc.string({ minLength: 1, maxLength: 60 })
const waits = fc.integer({ min: 1, max: 31 * 86_400_000 })

t.test('a wait is never shortened, and is lengthened by its share and a minute at most', async () => {
  fc.assert(
    fc.property(waits, keys, fc.double({ min: 0, max: 100, noNaN: true }), (ms, key, jitter) => {
      const spread = spreadWait(ms, key, jitter)
      const wait = Math.ceil(ms / 1000)
      return spread >= wait && spread <= wait + Math.round(Math.min((wait * jitter) / 100, 60))
    }),
  )
})

t.test('short waits stay as they are, and longer ones differ by key but not from call to call', async t => {
  const told = (seconds: number) =>
    new Set(Array.from({ length: 200 }, (_, i) => spreadWait(seconds * 1000, `sluice:{project-${i}}:e`, 10)))
  t.same([...told(1)], [1])
  t.same([...told(60)].sort(), [60, 61, 62, 63, 64, 65, 66])
  t.equal(spreadWait(60_000, 'sluice:{acme}:e', 10), spreadWait(60_000, 'sluice:{acme}:e', 10))
})
