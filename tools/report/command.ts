/** `sluice report`: what the decision records show for each rule, and whether a report-only one is safe to enforce. */
import { writeFileSync } from 'node:fs'
import { reasonOf } from '../../config/files.js'
import { defineCommand, Unusable } from '../command.js'
import { type Dropped, decisionReader } from '../log/decision-record.js'
import { LogIntake } from '../log/intake.js'
import { readLogs } from '../log/read.js'
import { count } from '../text.js'
import { documentOf } from './document.js'
import { Gathered } from './gather.js'
import { reportPage } from './page.js'
import { reportText } from './text.js'

export const report = defineCommand({
  name: 'report',
  summary: 'Show from a log what each rule refuses, and which report-only rules are safe to enforce',
  operands: { usage: 'FILE...|-', least: 1, most: Number.POSITIVE_INFINITY },
  options: {
    percentile: {
      type: 'string',
      value: 'N',
      default: '99',
      help: 'percentage of its requests that a report-only rule must have room for',
    },
    html: {
      type: 'string',
      value: 'FILE',
      help: 'also write one page with charts; it may replace an older one',
    },
    json: { type: 'boolean', help: 'print JSON' },
  },
  details: `FILE is a log of the gateway, plain or gzip; "-" is standard input. Other lines than decision records are skipped. Several files are merged by time.

A report-only rule is safe to enforce when it was observed for a week and would have refused no more than the percentile allows. The same holds for making a trial the quota and for raising a share. Percentages and suggested quotas need admitted requests in the log: log.decisions: all, or a share.

Exit code 0 when every report-only rule in the log is safe to enforce, or there is none; 1 when one is not safe yet, or when more than 1 % of the lines, or the rest of a file, could not be read, so that the numbers are unreliable; 2 when there is no decision record.`,
  example: 'sluice report --percentile 99.5 --html report.html gateway.log gateway.log.1.gz',
  async run({ values, positionals }, io) {
    const percentile = readPercentile(values.percentile)
    if (values.html !== undefined) checkPageName(values.html)
    const intake = new LogIntake()
    const gathered = new Gathered()
    const dropped: Dropped = new Map()
    await readLogs({
      names: positionals,
      reader: () => decisionReader(dropped),
      take: record => gathered.add(record),
      intake,
      io,
      now: Date.now(),
    })
    if (intake.used === 0) throw new Unusable(nothingFound(positionals, intake))
    const document = documentOf(gathered, intake, dropped, percentile)
    if (values.html !== undefined) writePage(values.html, reportPage(document))
    io.out(values.json ? `${JSON.stringify(document, null, 2)}\n` : reportText(document, intake, io))
    return intake.isDamaged || document.promotions.some(({ safe }) => !safe) ? 1 : 0
  },
})

function readPercentile(text: string): number {
  const percentile = Number(text)
  if (text.trim() !== '' && percentile > 0 && percentile <= 100) return percentile
  throw new Unusable(`--percentile is "${text}"; it must be a number above 0, at most 100.`)
}

function nothingFound(names: readonly string[], { lines, troubles, shown: [first] }: LogIntake): string {
  const found = `No decision record in ${names.join(', ')}: ${count(lines, 'line')}, ${troubles.broken} broken.`
  return first === undefined ? found : `${found} ${first.file}:${first.line}: ${first.reason}.`
}

/** Writing the report over a log would destroy the log. */
function checkPageName(file: string): void {
  if (/\.html?$/i.test(file)) return
  throw new Unusable(`--html is "${file}"; name a file that ends in .html, because its content is replaced.`)
}

function writePage(file: string, page: string): void {
  try {
    writeFileSync(file, page)
  } catch (error) {
    throw new Unusable(`${file} cannot be written: ${reasonOf(error)}.`)
  }
}
