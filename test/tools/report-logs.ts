/** Logs for tests of reports. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Beside, DecisionRecord } from '../../gateway/observe/record-types.js'
import type { ReportDocument } from '../../tools/report/document.js'
import { sluice } from '../helpers/command.js'
import { decisionRecord, randomOf } from '../helpers/decision-lines.js'

export const START = Date.UTC(2026, 0, 5)
export const HOUR = 3_600_000
export const DAY = 24 * HOUR

export const lineOf = (record: object) => `${JSON.stringify({ level: 'info', ...record, msg: 'decision' })}\n`
export const timeOf = (ms: number) => new Date(ms).toISOString()

/** What a report-only rule records about one request. */
export function besideOf(rule: string, key: string, result: Beside['result'], used: number): Beside {
  return {
    rule,
    kind: 'volumetric',
    result,
    key,
    counters: [{ policy: rule, q: 3, used, t_ms: 900, w_ms: 1000 }],
  }
}

/** The separate record that a report-only rule writes when it would have refused. */
export function wouldDeny(main: DecisionRecord, rule: string, key: string): DecisionRecord {
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

/** Nine days: a rule that hits only twice, one that hits often, and an enforced bucket that refuses a few. */
export function nineDays(): DecisionRecord[] {
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

export function logOf(t: Test, text: string | Buffer, name = 'gateway.log'): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

export async function report(file: string, ...options: string[]): Promise<ReportDocument> {
  const { code, out, err } = await sluice(['report', file, '--json', ...options])
  if (code > 1) throw new Error(err)
  return JSON.parse(out)
}
