/** What a report says about each rule, and whether a report-only rule is safe to enforce. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { MemoryStore } from '../../gateway/decide/store/memory.js'
import type { Beside, DecisionRecord } from '../../gateway/observe/record-types.js'
import { DemandMeter } from '../../tools/report/demand.js'
import { sluice } from '../helpers/command.js'
import { decisionRecord } from '../helpers/decision-lines.js'
import { matchesGolden } from '../helpers/golden.js'
import { besideOf, lineOf, logOf, nineDays, report, START, timeOf } from './report-logs.js'

/** The records as lines, among other lines that a log may contain. */
function mixedLog([first, ...rest]: readonly string[]): string {
  return [
    '{"level":"info","msg":"Sluice is ready"}\n',
    'node: a warning of somebody else\n',
    `2026-01-05T00:00:00Z stdout F ${first}`,
    '{"v":1,"decision":"deny","ts":"2026-01-05T01:0\n',
    lineOf({ ...decisionRecord(), v: 2 }),
    lineOf(decisionRecord({ ts: '2099-01-01T00:00:00.000Z' })),
    lineOf({ ...decisionRecord(), counters: 'none' }),
    '{"level":"warn","rule":"busy","dropped":12,"per_second":100,"msg":"decisions dropped"}\n',
    ...rest,
  ].join('')
}

t.test('--json and the text are stable, whatever other lines the log contains', async t => {
  const records = nineDays().map(lineOf)
  const { code, out } = await sluice(['report', '-', '--json'], { stdin: mixedLog(records.slice(0, 14)) })
  t.equal(code, 1, 'an unsafe rule gives exit code 1')
  matchesGolden(t, out, 'report.json')
  const told = await sluice(['report', '-'], { stdin: mixedLog(records) })
  t.equal(told.code, 1)
  matchesGolden(t, told.out, 'report.txt')
})

t.test(
  'the used part of a quota is never more than the quota, and attempts beyond it are shown beside it',
  async t => {
    const flood = Array.from({ length: 6 }, (_, i) =>
      decisionRecord({
        ts: timeOf(START + i * 100),
        beside: [besideOf('busy', 'b', i < 3 ? 'allowed' : 'limited', Math.min(3, i + 1))],
      }),
    )
    const meter = decisionRecord({
      ts: timeOf(START + 700),
      decision: 'deny',
      rule: 'flood',
      kind: 'volumetric',
      counters: [{ policy: 'flood', q: 5, used: 7, t_ms: 900, w_ms: 1000 }],
    })
    // All or nothing: what the burst refuses is not counted in the other window either.
    const windows = Array.from({ length: 12 }, (_, i) =>
      decisionRecord({
        ts: timeOf(START + 800 + i),
        beside: [
          {
            ...besideOf('both', 'b', i === 0 ? 'allowed' : 'limited', 1),
            kind: 'project-limits',
            counters: [
              { policy: 'both.burst', q: 1, used: 1, t_ms: 900, w_ms: 1000 },
              { policy: 'both.sustained', q: 10, used: 1, t_ms: 59_000, w_ms: 60_000 },
            ],
          },
        ],
      }),
    )
    const log = logOf(t, [...flood, meter, ...windows].map(lineOf).join(''))
    const { rules } = await report(log)
    t.match(rules.find(({ rule }) => rule === 'both')?.peaks[1], { quota: 10, used: 1, attempted: 12 })
    const peakOf = (name: string) => rules.find(({ rule }) => rule === name)?.peaks[0]
    t.match(peakOf('busy'), { quota: 3, used: 3, attempted: 6 })
    t.match(peakOf('flood'), { quota: 5, used: 5, attempted: 7 })
    const page = join(t.testdir(), 'report.html')
    const { out } = await sluice(['report', log, '--html', page])
    t.match(out, /^policy +window +quota +used +attempted$/m)
    t.match(out, /^flood +1 s +5 +5 +7$/m)
    t.match(readFileSync(page, 'utf8'), /quota<\/th><th scope="col">used<\/th><th scope="col">attempted/)
  },
)

t.test('demand that the log does not show is a question mark', async t => {
  const record = (decision: 'allow' | 'deny', at: number, sample = 1) =>
    decisionRecord({
      ts: timeOf(START + at),
      decision,
      sample,
      beside: [besideOf('busy', 'b', 'limited', 3)],
    })
  const attempted = async (records: readonly DecisionRecord[], more = '') => {
    const log = logOf(t, records.map(lineOf).join('') + more)
    const peak = (await report(log)).rules.find(({ rule }) => rule === 'busy')?.peaks[0]
    const { out } = await sluice(['report', log])
    return [peak?.attempted, /^busy .* (\S+)$/m.exec(out.slice(out.indexOf('Peak use')))?.[1]]
  }
  const dropped = '{"level":"warn","rule":"busy","dropped":12,"per_second":100,"msg":"decisions dropped"}\n'
  t.same(await attempted([record('deny', 0), record('deny', 1)]), [null, '?'], 'decisions: refused')
  t.same(await attempted([record('deny', 0), record('allow', 1, 0.01)]), [null, '?'], 'a share of the others')
  t.same(await attempted([record('deny', 0), record('allow', 1)], dropped), [null, '?'], 'lines left out')
  t.same(await attempted([record('deny', 0), record('allow', 1)]), [3, '3'], 'decisions: all')
})

t.test('requests refused for a missing part of the key count as seen', async t => {
  const asked = { rule: 'per-device', kind: 'volumetric' } as const
  const passed = decisionRecord({
    ...asked,
    counters: [{ policy: 'per-device', q: 5, used: 1, t_ms: 900, w_ms: 1000 }],
  })
  const lacking = decisionRecord({ ...asked, decision: 'deny', counters: [] })
  const { rules } = await report(logOf(t, [passed, lacking, lacking].map(lineOf).join('')))
  t.match(
    rules.find(({ rule }) => rule === 'per-device'),
    { seen: 3, refused: 2 },
  )
})

t.test('a report-only rule is safe after a quiet week, and otherwise the report says why not', async t => {
  const week = logOf(t, nineDays().map(lineOf).join(''))
  const [busy, calm] = (await report(week)).promotions
  t.match(calm, { rule: 'calm', safe: true, seen: 900, wouldRefuse: 2, projects: 2 })
  t.match(
    calm?.verdict,
    /^Safe to enforce: in 9\.0 days it would have refused 2 of 900 requests \(0\.22 %\), of 2 projects\.$/,
  )
  t.match(busy, { rule: 'busy', safe: false, share: 0.1 })
  t.match(
    busy?.verdict,
    /^Not yet: it would refuse 90 of 900 requests \(10 %, more than 1 %\), of 4 projects\.$/,
  )
  const [, strict] = (await report(week, '--percentile', '99.9')).promotions
  t.match(strict, { safe: false, verdict: /more than 0\.1 %/ })

  const days = logOf(t, nineDays().slice(0, 200).map(lineOf).join(''), 'two-days.log')
  t.match(
    (await report(days)).promotions[1]?.verdict,
    /^Not yet: it was observed for 1\.8 days, not for a week\.$/,
  )
})

t.test(
  'suggested quotas include the cost of requests, and are omitted if the response decides the cost',
  async t => {
    const costing = (cost: number) =>
      nineDays().map(record => ({
        ...record,
        beside: record.beside.map(beside => ({
          ...beside,
          counters: beside.counters.map(counter => ({ ...counter, cost })),
        })),
      }))
    const promotionsOf = async (name: string, records: object[]) =>
      (await report(logOf(t, records.map(lineOf).join(''), name))).promotions
    const suggested = (promotions: Awaited<ReturnType<typeof promotionsOf>>) =>
      promotions.flatMap(one => one.suggested ?? []).map(one => one.suggested)
    const plain = suggested(await promotionsOf('plain.log', nineDays()))
    t.ok(plain.length > 0)
    t.same(
      suggested(await promotionsOf('five.log', costing(5))),
      plain.map(quota => quota * 5),
    )
    const told = await promotionsOf('told.log', costing(0))
    t.same(suggested(told), [])
    t.match(told[0]?.unknown.join(' '), /counts by the answers of the upstream/)
  },
)

t.test('the exit code is 0 only if every report-only rule is safe to enforce', async t => {
  const codeOf = async (records: DecisionRecord[]) =>
    (await sluice(['report', logOf(t, records.map(lineOf).join(''))])).code
  const only = (rule: string) =>
    nineDays().flatMap(record =>
      record.mode === 'report-only' && record.rule !== rule
        ? []
        : [{ ...record, beside: record.beside.filter(beside => beside.rule === rule) }],
    )
  t.equal(await codeOf(only('calm')), 0, 'the only rule is safe')
  t.equal(await codeOf(only('busy')), 1, 'the only rule is not safe')
  t.equal(await codeOf(nineDays()), 1, 'one of two rules is not safe')
  t.equal(await codeOf(only('none')), 0, 'there is no report-only rule')
})

t.test('the report says what is unknown because of sampling, and makes no suggestions from it', async t => {
  const refusals = logOf(
    t,
    nineDays()
      .filter(({ decision }) => decision !== 'allow')
      .map(lineOf)
      .join(''),
  )
  const [busy] = (await report(refusals)).promotions
  t.match(busy, { safe: false, seen: null, share: null, suggested: null, wouldRefuse: 90 })
  t.match(busy?.verdict, 'which share of its requests it would refuse is not in the log')
  t.match(busy?.unknown[0], 'set log.decisions to all, or to a share')

  const sampled = nineDays()
    .filter((record, i) => record.decision !== 'allow' || i % 4 === 0)
    .map(record => (record.decision === 'allow' ? { ...record, sample: 0.25 } : record))
  const [share] = (await report(logOf(t, sampled.map(lineOf).join(''), 'sampled.log'))).promotions
  t.ok(Math.abs((share?.seen ?? 0) - 900) < 100, `about 900 requests: ${share?.seen}`)
  t.equal(share?.suggested, null)
  t.match(share?.unknown[0], '25 % of the admitted requests are logged: shares are estimates')
})

t.test('the suggested quota admits the given percentile of requests', async () => {
  const arrivals = fc.array(
    fc.record({ gap: fc.integer({ min: 0, max: 900 }), key: fc.constantFrom('a', 'b') }),
    {
      minLength: 20,
      maxLength: 200,
    },
  )
  fc.assert(
    fc.property(arrivals, fc.constantFrom(50, 90, 99, 100), (list, percentile) => {
      const meter = new DemandMeter()
      let at = START
      const times = list.map(({ gap, key }) => {
        at += gap
        meter.add(besideOf('r', key, 'allowed', 1), at, 0)
        return { at, key }
      })
      const quota = meter.percentile('r', percentile) as number
      let now = 0
      const store = new MemoryStore(() => now)
      const window = { name: 'r', quota, ms: 1000, algorithm: 'sliding-window' } as const
      const demand = { kind: 'windows', windows: [window], lease: false } as const
      let refused = 0
      for (const { at, key } of times) {
        now = at
        const [answer] = store.take([{ key, demand, group: 0, onStoreError: 'open' }])
        if (!answer?.granted) refused += 1
      }
      return refused <= (times.length * (100 - percentile)) / 100
    }),
  )
})

t.test('the demand for slots follows from the durations of requests', async t => {
  const meter = new DemandMeter()
  const slot = (key: string): Beside => ({
    rule: 'slots',
    kind: 'in-flight',
    result: 'allowed',
    key,
    counters: [{ policy: 'slots', q: 1, used: 1, t_ms: 1000, w_ms: null }],
  })
  for (const [at, duration] of [
    [0, 100],
    [50, 100],
    [99, 10],
    [200, 10],
  ] as const)
    meter.add(slot('a'), START + at, duration)
  t.equal(meter.percentile('slots', 100), 3)
  t.equal(meter.percentile('slots', 50), 1)
})

t.test('the page loads nothing and escapes text from the log', async t => {
  const file = join(t.testdir(), 'report.html')
  const hostile = decisionRecord({
    rule: '<script>alert(1)</script>',
    project: '"><img src=x>',
    decision: 'deny',
  })
  await sluice(['report', '-', '--html', file], { stdin: [...nineDays(), hostile].map(lineOf).join('') })
  const page = readFileSync(file, 'utf8')
  t.notMatch(page, /<script|<img|<link|https?:|url\((?!#)/)
  t.match(page, /&lt;script&gt;/)
  t.match(page, /<svg[^>]*role="img" aria-label="Refusals of busy by hour"/)
  t.match(page, /prefers-color-scheme: dark/)
  t.match(page, /✓ calm/)
})
