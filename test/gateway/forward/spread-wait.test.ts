import fc from 'fast-check'
import t from 'tap'
import { spreadWait } from '../../../gateway/forward/spread-wait.js'

const keys = fc.string({ minLength: 1, maxLength: 60 })
const waits = fc.integer({ min: 1, max: 31 * 86_400_000 })

t.test('a wait is never shorter, and longer by no more than the share and a minute', async () => {
  fc.assert(
    fc.property(waits, keys, fc.double({ min: 0, max: 1, noNaN: true }), (ms, key, jitter) => {
      const spread = spreadWait(ms, key, jitter)
      return spread >= ms && spread <= ms + Math.min(ms * jitter, 60_000)
    }),
  )
})

t.test('a key is told the same each time, and keys that are much alike are spread evenly', async t => {
  t.equal(spreadWait(60_000, 'sluice:1:{acme}:e', 0.1), spreadWait(60_000, 'sluice:1:{acme}:e', 0.1))
  const tenths = Array<number>(10).fill(0)
  for (let i = 0; i < 10_000; i += 1) {
    const added = spreadWait(1000, `sluice:1:{project-${i}}:e:project-limits:catch-all`, 1) - 1000
    tenths[Math.floor(added / 100)] = (tenths[Math.floor(added / 100)] as number) + 1
  }
  t.ok(
    tenths.every(tenth => tenth > 850 && tenth < 1150),
    `of 10,000 keys each tenth has about 1,000: ${tenths}`,
  )
})
