import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { MemoryStore } from '../../gateway/decide/store/memory.js'
import type { Beside, DecisionRecord } from '../../gateway/observe/record.js'
import { Distinct } from '../../tools/log/distinct.js'
import { DemandMeter } from '../../tools/report/demand.js'
import type { ReportDocument } from '../../tools/report/document.js'
import { sluice } from '../helpers/command.js'
import { decisionRecord, randomOf } from '../helpers/decision-lines.js'
import { matchesGolden } from '../helpers/golden.js'
import { inProject } from '../helpers/root.js'

const START = Date.UTC(2026, 0, 5)
const HOUR = 3_600_000
const DAY = 24 * HOUR

const lineOf = (record: object) => `${JSON.stringify({ level: 'info', ...record, msg: 'decision' })}\n`
const timeOf = (ms: number) => new Date(ms).toISOString()

/** A report-only rule's word on one request. */
function besideOf(rule: string, key: string, result: Beside['result'], used: number): Beside {
  return {
    rule,
    kind: 'volumetric',
    result,
    key,
    counters: [{ policy: rule, q: 3, used, t_ms: 900, w_ms: 1000 }],
  }
}

/** The record of its own that a report-only rule writes when it would have refused. */
function wouldDeny(main: DecisionRecord, rule: string, key: string): DecisionRecord {
  return decisionRecord({
    ...main,
    decision: 'would_deny',
    mode: 'report-only',
    rule,
    kind: 'volumetric',
    src: 'policies/volumetric.yaml:5',
    key,
    counters: [{ policy: rule, q: 3, used: 3, t_ms: 900, w_ms: 1000 }],
    beside: [],
    would_status: 429,
  })
}

/** Nine days: a rule that hits nobody but twice, one that hits often, and an enforced bucket that refuses a few. */
function nineDays(): DecisionRecord[] {
  const records: DecisionRecord[] = []
  const random = randomOf(3)
  for (let i = 0; i < 900; i++) {
    const refused = i % 100 === 7
    const project = `project-${Math.floor(random() * 4)}`
    const main = decisionRecord({
      ts: timeOf(START + Math.floor((i * 9 * DAY) / 900)),
      id: `request-${i}`,
      project,
      decision: refused ? 'deny' : 'allow',
      key: `key of ${project}`,
      beside: [
        besideOf('calm', 'a', i % 450 === 449 ? 'limited' : 'allowed', 1),
        besideOf('busy', 'b', i % 10 === 0 ? 'limited' : 'allowed', 2),
      ],
      ...(refused ? { would_status: 429, sent_status: 429 } : {}),
    })
    records.push(main)
    if (i % 450 === 449) records.push(wouldDeny(main, 'calm', 'a'))
    if (i % 10 === 0) records.push(wouldDeny(main, 'busy', `b${i % 7}`))
  }
  return records
}

function logOf(t: Test, text: string | Buffer, name = 'gateway.log'): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

async function report(file: string, ...options: string[]): Promise<ReportDocument> {
  const { code, out, err } = await sluice(['report', file, '--json', ...options])
  if (code !== 0) throw new Error(err)
  return JSON.parse(out)
}

t.test('--json is a stable document, whatever else stands in the log', async t => {
  const [first, ...rest] = nineDays().map(lineOf)
  const text = [
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
  const { code, out } = await sluice(['report', '-', '--json'], { stdin: text })
  t.equal(code, 0)
  matchesGolden(t, out, 'report.json')
  const told = await sluice(['report', '-'], { stdin: text })
  t.equal(told.code, 0)
  matchesGolden(t, told.out, 'report.txt')
})

t.test('a report-only rule is safe after a quiet week; else the reasons are told', async t => {
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

t.test('what sampling leaves unknown is said, and nothing is made up in its stead', async t => {
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

t.test('the suggested quota has room for the percentile of the requests', async () => {
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

t.test('demand at once is told by how long requests last', async t => {
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

t.test('records that were written late come in their place; several files are merged', async t => {
  const at = (ms: number, id: string) =>
    decisionRecord({ ts: timeOf(START + ms), id, beside: [besideOf('r', 'k', 'allowed', 1)] })
  const all = Array.from({ length: 40 }, (_, i) => at(i * 900, `request-${i}`))
  const suggested = async (...texts: string[]) => {
    const files = texts.map((text, i) => logOf(t, text, `${i}.log`))
    const { out } = await sluice(['report', ...files, '--json', '--percentile', '100'])
    return (JSON.parse(out) as ReportDocument).promotions[0]?.suggested?.[0]?.suggested
  }
  const lines = all.map(lineOf)
  t.equal(await suggested(lines.join('')), 2)
  t.equal(await suggested([...lines].reverse().join('')), 2)
  const even = lines.filter((_, i) => i % 2 === 0).join('')
  const odd = lines.filter((_, i) => i % 2 === 1).join('')
  t.equal(await suggested(even, odd), 2)
})

t.test('plain, gzip and standard input are read alike; a damaged end is told', async t => {
  const text = nineDays().map(lineOf).join('')
  const plain = await sluice(['report', logOf(t, text)])
  const packed = gzipSync(text)
  t.equal((await sluice(['report', logOf(t, packed, 'gateway.log.1')])).out, plain.out)
  t.equal((await sluice(['report', '-'], { stdin: packed })).out, plain.out)
  const half = await sluice(['report', logOf(t, packed.subarray(0, packed.length / 2), 'half.gz')])
  t.equal(half.code, 0)
  t.match(half.out, /1 broken line skipped/)
  t.match(half.out, /half\.gz:\sthe\sgzip\sdata\sis\sdamaged\sfrom\shere\son/)
})

t.test('what cannot be read is told in a sentence, with exit code 2', async t => {
  const dir = t.testdir()
  const say = async (sentence: string, ...words: string[]) => {
    const { code, out, err } = await sluice(['report', ...words])
    t.same([code, out], [2, ''], sentence)
    t.equal(err, `${sentence}\n`)
  }
  await say(`${dir} is a folder. Name the log files in it.`, dir)
  await say(`${dir}/none cannot be read: it does not exist.`, `${dir}/none`)
  writeFileSync(`${dir}/empty`, '')
  await say(`No decision record in ${dir}/empty: 0 lines, 0 broken.`, `${dir}/empty`)
  writeFileSync(`${dir}/binary`, Buffer.from([1, 2, 0, 255]))
  await say(`${dir}/binary is not a log: it is not text.`, `${dir}/binary`)
  writeFileSync(`${dir}/other`, 'hello\n{"decision":"deny","v":1}\n')
  await say(
    `No decision record in ${dir}/other: 2 lines, 1 broken. ${dir}/other:2: "ts" is missing.`,
    `${dir}/other`,
  )
  await say('"report" needs FILE...|-. "sluice report --help" tells more.')
  await say('There is no option --jsn. Did you mean --json? "sluice report --help" tells more.', '--jsn', 'x')
  await say('--percentile is "all"; it must be a number above 0, at most 100.', '--percentile', 'all', 'x')
  mkdirSync(`${dir}/page`)
  writeFileSync(`${dir}/log`, lineOf(decisionRecord()))
  await say(`${dir}/page cannot be written: EISDIR.`, '--html', `${dir}/page`, `${dir}/log`)
})

t.test('a line without end is skipped, not kept', async t => {
  const { code, out } = await sluice(['report', '-'], {
    stdin: `${'x'.repeat(3 * 1024 * 1024)}\n${lineOf(decisionRecord())}`,
  })
  t.equal(code, 0)
  t.match(out, /the line is longer than 1 MiB/)
  t.match(out, /1 record/)
})

t.test('forty columns are enough, and a log cannot steer the terminal', async t => {
  const hostile = decisionRecord({ rule: 'bad\u001b[2Jrule', project: 'p\u0007', decision: 'deny' })
  const text = [...nineDays(), hostile].map(lineOf).join('')
  const { out } = await sluice(['report', '-'], { stdin: text, columns: 40 })
  t.same(
    out.split('\n').filter(line => line.length > 40),
    [],
  )
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
  t.notMatch(out, /[\u0000-\u0009\u000b-\u001f]/)
})

t.test('the page holds all that it needs, and nothing of the log runs in it', async t => {
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

t.test('distinct things are counted exactly up to a limit, and nearly beyond it', async t => {
  const few = new Distinct()
  for (let i = 0; i < 8000; i++) few.add(`key ${i % 4000}`)
  t.same([few.count, few.isExact], [4000, true])
  const many = new Distinct()
  for (let i = 0; i < 100_000; i++) many.add(`key ${i}`)
  t.notOk(many.isExact)
  t.ok(Math.abs(many.count - 100_000) < 6000, `${many.count}`)
})

t.test('progress is shown to who watches, and wiped', async t => {
  const { err, out } = await sluice(['report', logOf(t, nineDays().map(lineOf).join(''))], { watched: true })
  t.match(err, /\[#+-*\] \d+ %/)
  t.ok(err.endsWith('\r\x1b[K'))
  t.notMatch(out, '\x1b')
})

t.test('a reader that has gone ends the command quietly', async t => {
  const log = logOf(t, nineDays().map(lineOf).join(''))
  const command = `"${process.execPath}" "${inProject('dist', 'gateway', 'cli.js')}" report "${log}" --json`
  // The reader leaves before anything is written.
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', `${command} | true`])
  t.same([stdout, stderr], ['', ''])
})
