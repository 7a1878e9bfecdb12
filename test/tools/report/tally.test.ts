import t from 'tap'
import { RuleTally } from '../../../tools/report/tally.js'

const count = (quota: number, attempted: number) => ({ policy: 'a.burst', quota, attempted, windowMs: 1000 })

t.test('each plan or project with its own quota has its own peak and no former quotas', async t => {
  const tally = new RuleTally('a', 'project-limits', 'enforce')
  for (const attempted of [1, 2, 3]) {
    tally.peak('free', count(3, attempted))
    tally.peak('team', count(9, attempted * 2))
  }
  t.strictSame(
    [...tally.peaks.values()].map(({ quota, attempted, formerQuotas }) => [
      quota,
      attempted,
      [...formerQuotas],
    ]),
    [
      [3, 3, []],
      [9, 6, []],
    ],
  )
})

t.test('a changed quota of one project keeps one peak and lists the former quotas', async t => {
  const tally = new RuleTally('a', 'project-limits', 'enforce')
  tally.peak('acme', count(5, 8))
  tally.peak('acme', count(7, 2))
  tally.peak('acme', count(10, 3))
  t.strictSame(
    [...tally.peaks.values()].map(({ quota, attempted, formerQuotas }) => [
      quota,
      attempted,
      [...formerQuotas],
    ]),
    [[10, 8, [5, 7]]],
  )
})
