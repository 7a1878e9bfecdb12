/** Days, weeks and months in a time zone, correct across both changes of summer time. */
import fc from 'fast-check'
import t from 'tap'
import { boundariesAt, lengthAt, longestMs } from '../../../gateway/decide/windows/calendar.js'
import { localDay, periodOf } from './local-day.js'

const HOUR = 3_600_000
const UNITS = ['day', 'week', 'month'] as const

t.test('days on which clocks change have 23 or 25 hours', async t => {
  const table: [timezone: string, day: string, hours: number][] = [
    ['Europe/Berlin', '2026-03-29', 23],
    ['Europe/Berlin', '2026-10-25', 25],
    ['Europe/Berlin', '2026-10-26', 24],
    ['America/New_York', '2026-03-08', 23],
    ['America/New_York', '2026-11-01', 25],
    ['Australia/Lord_Howe', '2026-04-05', 24.5],
    // The clocks go forward at midnight: the day begins at 1:00.
    ['Africa/Cairo', '2026-04-24', 23],
    ['America/Havana', '2026-03-08', 23],
    ['America/Havana', '2026-11-01', 25],
    ['Asia/Kolkata', '2026-03-29', 24],
    ['UTC', '2026-10-25', 24],
  ]
  for (const [timezone, day, hours] of table) {
    const noon = Date.parse(`${day}T12:00:00Z`)
    const [before, begin, end, after] = boundariesAt({ unit: 'day', timezone }, noon)
    t.equal((end - begin) / HOUR, hours, `${day} in ${timezone}`)
    t.equal(localDay(timezone, begin), day)
    t.not(localDay(timezone, begin - 1), day)
    t.not(localDay(timezone, end), day)
    t.ok(before < begin && end < after)
  }
})

t.test('weeks begin on Monday and months on the first, at local midnight', async t => {
  const at = Date.parse('2026-11-22T10:00:00Z')
  const iso = (unit: (typeof UNITS)[number], timezone: string) =>
    boundariesAt({ unit, timezone }, at).map(one => new Date(one).toISOString())
  t.strictSame(iso('week', 'UTC').slice(1, 3), ['2026-11-16T00:00:00.000Z', '2026-11-23T00:00:00.000Z'])
  t.strictSame(iso('month', 'Europe/Berlin'), [
    '2026-09-30T22:00:00.000Z',
    '2026-10-31T23:00:00.000Z',
    '2026-11-30T23:00:00.000Z',
    '2026-12-31T23:00:00.000Z',
  ])
  t.strictSame(iso('month', 'Asia/Tokyo').slice(1, 2), ['2026-10-31T15:00:00.000Z'])
})

t.test('every moment belongs to exactly one day, week and month', async () => {
  const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/Santiago', 'Pacific/Chatham', 'Asia/Beirut')
  const moment = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2032, 0) })
  fc.assert(
    fc.property(zone, fc.constantFrom(...UNITS), moment, (timezone, unit, at) => {
      const calendar = { unit, timezone }
      const [before, begin, end, after] = boundariesAt(calendar, at)
      const periods = [before, begin - 1, begin, at, end - 1, end].map(one => periodOf(calendar, one))
      const [first, last, ...own] = periods
      const next = own.pop()
      return (
        begin <= at &&
        at < end &&
        first === last &&
        own.every(one => one === own[0]) &&
        new Set([first, own[0], next]).size === 3 &&
        [before, begin, end].every(one => lengthAt(calendar, one) <= longestMs(calendar)) &&
        lengthAt(calendar, end) === after - end
      )
    }),
    { numRuns: 150 },
  )
})
