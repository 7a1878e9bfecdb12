/** Durations in words. */
import t from 'tap'
import { perText, waitText } from '../../../gateway/forward/units.js'

const HOUR = 3600

t.test('a window is named in the largest unit that fits it', async t => {
  const table: [seconds: number, text: string][] = [
    [1, 'per second'],
    [10, 'per 10 seconds'],
    [60, 'per minute'],
    [90, 'per 90 seconds'],
    [15 * 60, 'per 15 minutes'],
    [HOUR, 'per hour'],
    [36 * HOUR, 'per 36 hours'],
    [24 * HOUR, 'per day'],
    [31 * 24 * HOUR, 'per 31 days'],
  ]
  for (const [seconds, text] of table) t.equal(perText(seconds * 1000), text)
  // Whatever the length of the current month.
  t.equal(
    perText(30 * 24 * HOUR * 1000, { unit: 'month', timezone: 'Europe/Berlin' }),
    'per month (Europe/Berlin)',
  )
})

t.test('a wait is told in at most two units, and never shorter than it is', async t => {
  const table: [seconds: number, text: string][] = [
    [1, '1 s'],
    [59, '59 s'],
    [60, '1 min'],
    [61, '1 min 1 s'],
    [3599, '59 min 59 s'],
    [HOUR, '1 h'],
    [HOUR + 1, '1 h 1 min'],
    [24 * HOUR - 60, '23 h 59 min'],
    [24 * HOUR - 59, '1 day'],
    [24 * HOUR, '1 day'],
    [24 * HOUR + 1, '1 day 1 h'],
    [48 * HOUR, '2 days'],
    [31 * 24 * HOUR - HOUR, '30 days 23 h'],
  ]
  for (const [seconds, text] of table) t.equal(waitText(seconds), text)
})
