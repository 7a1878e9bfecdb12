/** `sluice overrides` and `sluice mode`: what was changed on the admin port, and changing the mode of a rule there. */
import { MODES } from '../../config/words/words.js'
import type { LiveOverride } from '../../gateway/admin/live-snapshot.js'
import { ask, KEY_HELP, LIVE, print, REASON, UNTIL } from '../admin.js'
import { defineCommand, NO_OPERANDS, Unusable } from '../command.js'
import { columns, minuteOf, printable, table } from '../text.js'

export const overrides = defineCommand({
  name: 'overrides',
  summary: 'List what was done on the admin port and what can be undone',
  operands: NO_OPERANDS,
  options: LIVE,
  details: `The newest 200 modes, access entries, negotiated limits and resets, of all gateways on one Redis, the newest first. ${KEY_HELP}`,
  example: 'sluice overrides --live http://127.0.0.1:8081',
  async run({ values }, io) {
    const answer = await ask<{ readonly overrides: readonly LiveOverride[] }>(
      { path: '/overrides' },
      values.live,
      io,
    )
    print(answer, values.json, io, ({ overrides }) =>
      overrides.length === 0 ? 'Nothing was done.\n' : table(COLUMNS, overrides.map(rowOf), io.columns),
    )
    return 0
  },
})

const COLUMNS = columns(['time (UTC)', 'what', 'by', 'why', 'undo'])

function rowOf({ at, what, by, why, undo_call }: LiveOverride): string[] {
  return [minuteOf(at), what, by, why ?? '', undo_call ?? '']
}

/** The response of `PUT /rules/ID/mode`. */
interface ReportedMode {
  readonly rule: string
  readonly mode: string
  readonly declared_mode: string | null
  readonly until: string | null
}

const UNDO = 'undo'
const WORDS: readonly string[] = [...MODES, UNDO]

export const mode = defineCommand({
  name: 'mode',
  summary: 'Make a rule report-only or enforced for now, without editing files',
  operands: { usage: 'RULE report-only|enforce|undo', least: 2, most: 2 },
  options: { ...REASON, until: UNTIL, ...LIVE },
  details: `Lasts until "undo" or the time of --until, also after a reload, in all gateways on one Redis. RULE is the name of a bucket, a rule or an access entry of the files. --why is required, except for undo. ${KEY_HELP}`,
  example: `sluice mode scim report-only --until 2026-12-31 --why "Refuses the import"
sluice mode scim undo`,
  async run({ values, positionals: [rule = '', word = ''] }, io) {
    const { why, by, until } = values
    const path = `/rules/${encodeURIComponent(rule)}/mode`
    if (!WORDS.includes(word))
      throw new Unusable(`Write report-only, enforce or undo, not "${printable(word)}".`)
    if (word === UNDO) {
      if (until !== undefined) throw new Unusable('--until is for report-only and enforce.')
      const call = { method: 'DELETE', path, query: { why, by } }
      const { removed } = await ask<{ readonly removed: ReportedMode }>(call, values.live, io)
      print(removed, values.json, io, undoneText)
      return 0
    }
    if (why === undefined) throw new Unusable('Say why: --why TEXT.')
    const body = { mode: word, why, by, until }
    const answer = await ask<ReportedMode>({ method: 'PUT', path, body }, values.live, io)
    print(answer, values.json, io, setText)
    return 0
  },
})

function setText({ rule, mode, until, declared_mode }: ReportedMode): string {
  const ends = until === null ? '' : ` until ${until}`
  return `${printable(rule)}: ${mode}${ends}. "sluice mode ${printable(rule)} undo" goes back to its file, which says ${declared_mode}.\n`
}

function undoneText({ rule, declared_mode }: ReportedMode): string {
  const said = declared_mode === null ? 'No file has such a rule now.' : `Its file says ${declared_mode}.`
  return `${printable(rule)}: undone. ${said}\n`
}
