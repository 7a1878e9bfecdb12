/** `sluice access`: who is denied or exempt in the running gateway. */
import { listed } from '../../config/problem.js'
import { ask, KEY_HELP, LIVE, print, REASON, UNTIL } from '../admin.js'
import { defineCommand, Unusable } from '../command.js'
import { columns, minuteOf, printable, table } from '../text.js'

/** As returned by `GET /access`. */
interface ReportedEntry {
  readonly id: string
  readonly action: string
  readonly mode: string
  /** The mode in its file, when another one is set for now. */
  readonly declared_mode?: string
  readonly networks?: readonly string[]
  readonly projects?: readonly string[]
  readonly until: string | null
  readonly in_force: boolean
  readonly src: string | null
  readonly since: string | null
  readonly why: string | null
  readonly by: string | null
}

const WORDS = ['list', 'deny', 'exempt', 'remove']

export const access = defineCommand({
  name: 'access',
  summary: 'Deny or exempt networks or projects now, and list them',
  operands: {
    usage: 'list | deny NAME [NETWORK…] | exempt NAME [NETWORK…] | remove NAME',
    least: 1,
    most: 102,
  },
  options: {
    project: {
      type: 'string',
      value: 'ID',
      multiple: true,
      help: 'a project instead of networks; several times',
    },
    until: UNTIL,
    'report-only': { type: 'boolean', help: 'refuse nobody, only report' },
    ...REASON,
    ...LIVE,
  },
  details: `Entries last until they are removed or until --until, in all gateways on one Redis. --why is required to deny or exempt. ${KEY_HELP}`,
  example: `sluice access deny scraper 203.0.113.0/24 --until 2026-12-31 --why "Copies the catalogue"
sluice access remove scraper`,
  async run({ values, positionals: [word = '', name, ...networks] }, io) {
    const { why, by, until, project: projects, live, json } = values
    if (!WORDS.includes(word))
      throw new Unusable(`"access" knows ${listed(WORDS, 'and')}, not "${printable(word)}".`)
    if (word === 'list') {
      if (name !== undefined) throw new Unusable(`"access list" does not take "${printable(name)}".`)
      const answer = await ask<{ readonly entries: readonly ReportedEntry[] }>({ path: '/access' }, live, io)
      print(answer, json, io, ({ entries }) => listText(entries, io.columns))
      return 0
    }
    if (name === undefined) throw new Unusable(`"access ${word}" needs a name.`)
    const path = `/access/${encodeURIComponent(name)}`
    if (word === 'remove') {
      if (networks.length > 0) throw new Unusable('"access remove" takes one name.')
      const answer = await ask({ method: 'DELETE', path, query: { why, by } }, live, io)
      print(answer, json, io, () => `${printable(name)}: removed.\n`)
      return 0
    }
    if (why === undefined) throw new Unusable('Say why: --why TEXT.')
    const body = {
      action: word,
      ...(networks.length > 0 && { networks }),
      ...(projects.length > 0 && { projects }),
      ...(values['report-only'] && { mode: 'report-only' }),
      why,
      by,
      until,
    }
    const answer = await ask<ReportedEntry>({ method: 'PUT', path, body }, live, io)
    print(answer, json, io, one => listText([one], io.columns))
    return 0
  },
})

const COLUMNS = columns(['name', 'action', 'whom', 'since', 'until', 'by', 'why', 'from'])

function listText(entries: readonly ReportedEntry[], width: number): string {
  if (entries.length === 0) return 'Nobody is denied or exempt.\n'
  return table(COLUMNS, entries.map(rowOf), width)
}

function rowOf({
  id,
  action,
  mode,
  declared_mode,
  networks,
  projects,
  until,
  in_force,
  src,
  since,
  why,
  by,
}: ReportedEntry): string[] {
  return [
    id,
    action + modeText(mode, declared_mode),
    (networks ?? projects ?? []).join(' '),
    since === null ? '' : minuteOf(since),
    `${until ?? ''}${in_force ? '' : ' (over)'}`,
    by ?? '',
    why ?? '',
    src ?? '',
  ]
}

function modeText(mode: string, declared: string | undefined): string {
  if (declared !== undefined) return ` (${mode} for now; file: ${declared})`
  return mode === 'enforce' ? '' : ` (${mode})`
}
