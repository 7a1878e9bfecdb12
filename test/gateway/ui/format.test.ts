import t from 'tap'
import { bytes, length, moment, rate, several, time } from '../../../gateway/ui/format.js'

t.test('numbers are shown with as many digits as are useful', async t => {
  t.same([0, 0.04, 0.34, 12.36, 1234.5].map(rate), ['0', '<0.1', '0.3', '12.4', '1,235'])
  t.equal(bytes(98 * 1024 * 1024), '98 MiB')
  t.same([several(1, 'rule'), several(1200, 'address', 'addresses')], ['1 rule', '1,200 addresses'])
})

t.test('durations are shown in readable units', async t => {
  const lengths = [0, 999, 12_300, 90_000, 600_000, 3_600_000, 12_000_000, 200_000_000].map(length)
  t.same(lengths, ['0 ms', '999 ms', '12 s', '1 min 30 s', '10 min', '1 h', '3 h 20 min', '2 d 7 h'])
})

t.test('times are shown in UTC, with a date on another day', async t => {
  const now = Date.parse('2026-11-14T03:14:22Z')
  t.equal(time('2026-11-14T03:00:00Z', now), '03:00:00')
  t.equal(time('2026-11-13T23:00:00+00:00', now), '2026-11-13 23:00:00')
  t.equal(time('nonsense', now), '?')
  t.equal(moment('2026-11-14T03:04:22Z', now), '03:04:22 (10 min ago)')
  t.equal(moment('2026-11-14T03:24:22Z', now), '03:24:22 (in 10 min)')
})
