/** Logs in every condition: compressed, damaged, hostile, in several files. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { ReportDocument } from '../../tools/report/document.js'
import { Distinct } from '../../tools/report/tally.js'
import { sluice } from '../helpers/command.js'
import { decisionRecord } from '../helpers/decision-lines.js'
import { inProject } from '../helpers/root.js'
import { besideOf, lineOf, logOf, nineDays, START, timeOf } from './report-logs.js'

t.test('late records are sorted into place, and several files are merged', async t => {
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

t.test(
  'plain files, gzip files and standard input are read alike, and a damaged end is reported',
  async t => {
    const text = nineDays().map(lineOf).join('')
    const plain = await sluice(['report', logOf(t, text)])
    const packed = gzipSync(text)
    t.equal((await sluice(['report', logOf(t, packed, 'gateway.log.1')])).out, plain.out)
    t.equal((await sluice(['report', '-'], { stdin: packed })).out, plain.out)
    const half = await sluice(['report', logOf(t, packed.subarray(0, packed.length / 2), 'half.gz')])
    t.equal(half.code, 1)
    t.match(half.out, /the rest of a file, could not be read/)
    t.match(half.out, /1 broken line skipped/)
    t.match(half.out, /half\.gz:\sthe\sgzip\sdata\sis\sdamaged\sfrom\shere\son/)
  },
)

t.test('unusable input is reported in a sentence, with exit code 2', async t => {
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
  await say('"report" needs FILE...|-. See "sluice report --help".')
  await say('There is no option --jsn. Did you mean --json? See "sluice report --help".', '--jsn', 'x')
  await say('--percentile is "all"; it must be a number above 0, at most 100.', '--percentile', 'all', 'x')
  mkdirSync(`${dir}/page.html`)
  writeFileSync(`${dir}/log`, lineOf(decisionRecord()))
  await say(`${dir}/page.html cannot be written: it is a folder.`, '--html', `${dir}/page.html`, `${dir}/log`)
  await say(
    `--html is "${dir}/log"; name a file that ends in .html, because its content is replaced.`,
    '--html',
    `${dir}/log`,
    `${dir}/log`,
  )
  t.equal(
    readFileSync(`${dir}/log`, 'utf8'),
    lineOf(decisionRecord()),
    'the log is not overwritten by the page',
  )
})

t.test('lines over 1 MiB are skipped and reported with their places, and later lines are read', async t => {
  const giant = 'x'.repeat(3 * 1024 * 1024)
  const good = lineOf(decisionRecord())
  const { code, out } = await sluice(['report', '-'], { stdin: `${good}${giant}\n${good}{"bro\n${giant}` })
  t.equal(code, 1)
  t.match(out, /^5 lines, 2 records, 3 broken lines skipped\.$/m)
  t.match(out, /standard\sinput:2:\sthe\sline\sis\slonger\sthan\s1\sMiB:\sx+$/m)
  t.match(out, 'standard input:4: it is not complete JSON: {"bro')
  t.match(out, 'standard input:5: the line is longer')
})

t.test('with more than 1 % broken lines the report is marked as unreliable', async t => {
  const quiet = (records: number) => lineOf(decisionRecord()).repeat(records)
  const few = await sluice(['report', '-'], { stdin: `${quiet(99)}{"bro\n` })
  t.equal(few.code, 0)
  t.notMatch(few.out, /could not be read/)
  const many = await sluice(['report', '-'], { stdin: `${quiet(98)}{"bro\n` })
  t.equal(many.code, 1)
  t.match(many.out, /More than 1 % of the lines, or the rest of a file, could not be read/)
  const { out } = await sluice(['report', '-', '--json'], { stdin: `${quiet(98)}{"bro\n` })
  t.match(JSON.parse(out), { input: { damaged: true } })
})

t.test('the output fits forty columns and contains no control characters', async t => {
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

t.test('distinct values are counted exactly up to a limit, and approximately beyond it', async t => {
  const few = new Distinct()
  for (let i = 0; i < 8000; i++) few.add(`key ${i % 4000}`)
  t.same([few.count, few.isExact], [4000, true])
  const many = new Distinct()
  for (let i = 0; i < 100_000; i++) many.add(`key ${i}`)
  t.notOk(many.isExact)
  t.ok(Math.abs(many.count - 100_000) < 6000, `${many.count}`)
})

t.test('progress is shown on a terminal and erased at the end', async t => {
  const { err, out } = await sluice(['report', logOf(t, nineDays().map(lineOf).join(''))], { watched: true })
  t.match(err, /\[#+-*\] \d+ %/)
  t.ok(err.endsWith('\r\x1b[K'))
  t.notMatch(out, '\x1b')
})

t.test('a closed pipe ends the command without an error message', async t => {
  const log = logOf(t, nineDays().map(lineOf).join(''))
  const command = `"${process.execPath}" "${inProject('dist', 'gateway', 'cli.js')}" report "${log}" --json`
  // The reader exits before anything is written.
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', `${command} | true`])
  t.same([stdout, stderr], ['', ''])
})
