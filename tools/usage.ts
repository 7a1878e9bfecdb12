/** `sluice usage`: what projects have used, hour by hour, from the running gateway. */
import type { ReadableStream } from 'node:stream/web'
import { Failure } from '../gateway/errors.js'
import type { UsageRow } from '../gateway/usage/row.js'
import { adminPort, KEY_HELP, LIVE, noAdminPort, refuse } from './admin.js'
import { defineCommand, Unusable } from './command.js'
import type { Io } from './io.js'
import { columns, grouped, table } from './text.js'

export const usage = defineCommand({
  name: 'usage',
  summary: 'What each project has used, by bucket or hour',
  operands: { usage: '', least: 0, most: 0 },
  options: {
    live: LIVE.live,
    from: {
      type: 'string',
      value: 'TIME',
      help: 'a day (its beginning, UTC) or a moment such as 2026-12-31T18:00:00Z; default: 24 hours ago',
    },
    to: { type: 'string', value: 'TIME', help: 'the same, not contained; default: now' },
    project: { type: 'string', value: 'ID', help: 'only this project' },
    json: { type: 'boolean', help: 'a JSON object in each line, for each hour, project and bucket' },
    csv: { type: 'boolean', help: 'the same as comma-separated values' },
  },
  details: `Without --json and --csv the hours are added up. The gateway counts with "usage" in gateway.yaml.

${KEY_HELP}`,
  example: 'sluice usage --from 2026-11-01 --project acme --csv > acme.csv',
  async run({ values }, io) {
    if (values.json && values.csv) throw new Unusable('Either --json or --csv.')
    const { live, from, to, project } = values
    const rows = usageOf(live, { from, to, project }, io)
    if (values.json) for await (const row of rows) io.out(`${JSON.stringify(row)}\n`)
    else if (values.csv) await writeCsv(rows, io)
    else await writeTable(rows, io)
    return 0
  },
})

/** @throws {Unusable} {Failure} with the reason if there are no rows to be had */
async function* usageOf(
  where: string,
  asked: Readonly<Record<string, string | undefined>>,
  io: Io,
): AsyncGenerator<UsageRow> {
  const { origin, key } = await adminPort(where, io)
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(asked)) if (value !== undefined) query.set(name, value)
  const url = `${origin}/usage${query.size === 0 ? '' : `?${query}`}`
  const headers = new Headers(key === '' ? {} : { authorization: `Bearer ${key}` })
  const answer = await fetch(url, { headers }).catch(() => undefined)
  if (answer === undefined) throw new Failure(`Nothing answers on ${origin}. Does the gateway run?`)
  const { status } = answer
  if (status !== 200) refuse({ status, json: await answer.json().catch(() => undefined) })
  if (!answer.headers.get('content-type')?.startsWith('application/x-ndjson') || answer.body === null)
    throw noAdminPort(status)
  for await (const line of linesOf(answer.body as ReadableStream<Uint8Array>))
    yield JSON.parse(line) as UsageRow
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch {
    throw new Failure('The gateway has broken off its answer: its log says why.')
  }
}

const FIELDS = [
  'hour',
  'project',
  'plan',
  'environment',
  'bucket',
  'requests',
  'admitted',
  'refused',
  'cost',
] as const

async function writeCsv(rows: AsyncIterable<UsageRow>, io: Io): Promise<void> {
  io.out(`${FIELDS.join(',')}\n`)
  for await (const row of rows) io.out(`${FIELDS.map(field => csvCell(row[field] ?? '')).join(',')}\n`)
}

/** Quoted where RFC 4180 demands it. A name that a spreadsheet would take for a formula gets an apostrophe. */
function csvCell(value: string | number): string {
  const text = String(value)
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

async function writeTable(rows: AsyncIterable<UsageRow>, io: Io): Promise<void> {
  const sums = new Map<string, UsageRow>()
  for await (const row of rows) {
    const name = JSON.stringify([row.project, row.plan, row.environment, row.bucket])
    const known = sums.get(name)
    sums.set(name, known === undefined ? row : plus(known, row))
  }
  if (sums.size === 0) {
    io.err('Nothing was used in this time.\n')
    return
  }
  const busiest = [...sums.values()].sort((one, other) => other.requests - one.requests)
  io.out(table(COLUMNS, busiest.map(cellsOf), io.columns))
}

const COLUMNS = columns(
  ['project', 'plan', 'environment', 'bucket'],
  ['requests', 'admitted', 'refused', 'cost'],
)

function plus(one: UsageRow, other: UsageRow): UsageRow {
  return {
    ...one,
    requests: one.requests + other.requests,
    admitted: one.admitted + other.admitted,
    refused: one.refused + other.refused,
    cost: one.cost + other.cost,
  }
}

function cellsOf({ project, plan, environment, bucket, ...numbers }: UsageRow): string[] {
  const { requests, admitted, refused, cost } = numbers
  return [project, plan, environment, bucket ?? '-', ...[requests, admitted, refused, cost].map(grouped)]
}
