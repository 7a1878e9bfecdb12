/** `sluice counters`: what a project has used of its limits, in the running gateway. */
import type { ExplainedCounter } from '../../gateway/explain/explained.js'
import { perText, waitText } from '../../gateway/forward/units.js'
import { defineCommand } from '../command.js'
import { columns, table } from '../table.js'
import { grouped, printable, wrap } from '../text.js'
import { ask, KEY_HELP, LIVE, print } from './ask.js'
import { PARTS, partsOf } from './parts.js'

/** The response of `GET /projects/ID/counters`. */
interface ReportedCounters {
  readonly project: string
  readonly plan: string
  readonly environment: string
  readonly counters: readonly {
    readonly rule: string
    readonly mode: string
    readonly counters: readonly ExplainedCounter[]
  }[]
  readonly not_shown: readonly string[]
}

export const counters = defineCommand({
  name: 'counters',
  summary: 'Show what a project has used of its limits',
  operands: { usage: 'PROJECT', least: 1, most: 1 },
  options: { ...PARTS, ...LIVE },
  details: `Nothing is charged. PROJECT is an id, or client:ADDRESS for an unknown caller. Rules that count by more than the project are shown when options give the other parts of their key. ${KEY_HELP}`,
  example: 'sluice counters acme-production --ip 203.0.113.7',
  async run({ values, positionals: [project = ''] }, io) {
    const path = `/projects/${encodeURIComponent(project)}/counters`
    const answer = await ask<ReportedCounters>({ path, query: partsOf(values) }, values.live, io)
    print(answer, values.json, io, one => text(one, io.columns))
    return 0
  },
})

const COLUMNS = columns(['policy', 'mode', 'window'], ['quota', 'used', 'left', 'more in'])

function text({ project, plan, environment, counters, not_shown }: ReportedCounters, width: number): string {
  const rows = counters.flatMap(({ mode, counters }) => counters.map(one => rowOf(one, mode)))
  const title = `${printable(project)}, ${plan} in ${environment}\n`
  const body = rows.length === 0 ? 'No counter is known by the project alone.\n' : table(COLUMNS, rows, width)
  if (not_shown.length === 0) return title + body
  const others = `Counted by more than the project, so not shown without it: ${not_shown.join(', ')}.`
  return `${title}${body}${wrap(printable(others), width)}\n`
}

function rowOf({ policy, q, w_ms, calendar, used, left, t_ms }: ExplainedCounter, mode: string): string[] {
  const number = (value: number | null) => (value === null ? '?' : grouped(value))
  const window = w_ms === null ? 'at a time' : perText(w_ms, calendar)
  return [
    policy,
    mode,
    window,
    grouped(q),
    number(used),
    number(left),
    used ? waitText(Math.ceil(t_ms / 1000)) : '',
  ]
}
