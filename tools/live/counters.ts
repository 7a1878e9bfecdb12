/** `sluice counters` and `sluice reset`: what a project has used of its limits in the running gateway, and resetting it. */
import type { ExplainedCounter } from '../../gateway/explain/explanation.js'
import { perText, waitText } from '../../gateway/forward/units.js'
import { ask, KEY_HELP, LIVE, print, REASON } from '../admin.js'
import { defineCommand, type Options } from '../command.js'
import { columns, grouped, printable, table, wrap } from '../text.js'

const part = (value: string, help: string) => ({ type: 'string', value, help }) as const

const PARTS = {
  path: part('PATH', 'path of such a request'),
  method: part('METHOD', 'its method'),
  ip: part('ADDRESS', 'its client address'),
  header: {
    type: 'string',
    value: "'NAME: VALUE'",
    multiple: true,
    help: 'one of its headers; without a value: it does not have it',
  },
  ja3: part('HASH', 'JA3 fingerprint of its TLS; empty: it has none'),
  ja4: part('HASH', 'JA4 fingerprint of its TLS; empty: it has none'),
  auth: part('WORD', 'authenticated or anonymous'),
  email: part('ADDRESS', 'e-mail address that it names'),
  flow: part('ID', 'flow id that it names'),
  call: part('METHOD', 'JSON-RPC method that it calls, such as tools/call:search'),
} as const satisfies Options

type Given = { readonly [Name in keyof typeof PARTS]: string | readonly string[] | undefined }

/** The parts as query parameters of the admin port. */
function partsOf(values: Given): Given {
  const { path, method, ip, header, ja3, ja4, auth, email, flow, call } = values
  return {
    path,
    method: (method as string | undefined)?.toUpperCase(),
    ip,
    header,
    ja3,
    ja4,
    auth,
    email,
    flow,
    call,
  }
}

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

function rowOf(
  { policy, q, w_ms, calendar, lifetime, used, left, t_ms }: ExplainedCounter,
  mode: string,
): string[] {
  const number = (value: number | null) => (value === null ? '?' : grouped(value))
  const window = w_ms === null && !lifetime ? 'at a time' : perText(w_ms ?? 0, calendar, lifetime)
  return [
    policy,
    mode,
    window,
    grouped(q),
    number(used),
    number(left),
    used && t_ms !== null ? waitText(Math.ceil(t_ms / 1000)) : '',
  ]
}

export const reset = defineCommand({
  name: 'reset',
  summary: 'Reset one counter',
  operands: { usage: 'RULE', least: 1, most: 1 },
  options: {
    project: { type: 'string', value: 'ID', help: 'whose counter; always needed for a bucket' },
    ...PARTS,
    ...REASON,
    ...LIVE,
  },
  details: `RULE is the name of a bucket or rule; the options give the other parts of its key. This cannot be undone. Other gateways may keep refusing for as long as Redis told them to. ${KEY_HELP}`,
  example: `sluice reset catch-all --project acme-production --why "Their import is done"
sluice reset signup-rush --ip 203.0.113.7`,
  async run({ values, positionals: [rule = ''] }, io) {
    const { project, why, by } = values
    const query = { project, ...partsOf(values), why, by }
    const path = `/counters/${encodeURIComponent(rule)}`
    const answer = await ask<{ readonly reset: string }>({ method: 'DELETE', path, query }, values.live, io)
    print(answer, values.json, io, one => `${printable(one.reset)}: the counter was reset.\n`)
    return 0
  },
})
