import t from 'tap'
import type { Beside } from '../../../gateway/observe/record-types.js'
import { DemandMeter } from '../../../tools/report/demand.js'
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

t.test('a hostile log of ever new policies and quotas does not fill the memory', async t => {
  const tally = new RuleTally('a', 'project-limits', 'enforce')
  for (let i = 0; i < 30_000; i += 1) tally.peak(`p${i}`, { ...count(5, 1), policy: `policy-${i}` })
  t.equal(tally.peaks.size, 10_000)
  tally.peak('p0', { ...count(5, 9), policy: 'policy-0' })
  t.equal(tally.peaks.get('policy-0 5')?.attempted, 9, 'what is known is still counted')

  const edited = new RuleTally('a', 'project-limits', 'enforce')
  for (let quota = 1; quota <= 30_000; quota += 1) edited.peak('acme', count(quota, 1))
  const [peak] = edited.peaks.values()
  t.equal(edited.peaks.size, 1)
  t.equal(peak?.formerQuotas.size, 100)
})

t.test('demand is measured for a bounded number of policies', async t => {
  const meter = new DemandMeter()
  const used = (policy: string): Beside => ({
    rule: 'r',
    kind: 'volumetric',
    result: 'allowed',
    key: 'k',
    counters: [{ policy, q: 5, used: 1, t_ms: 1000, w_ms: 1000 }],
  })
  for (let i = 0; i <= 10_000; i += 1) meter.add(used(`policy-${i}`), i, 0)
  t.equal(meter.percentile('policy-9999', 90), 1)
  t.equal(meter.percentile('policy-10000', 90), undefined)
  meter.add(used('policy-0'), 10_001, 0)
  t.equal(meter.percentile('policy-0', 90), 1, 'what is known is still measured')
})
