/** `sluice overrides`: what operators have changed on the admin port. */
import type { LiveOverride } from '../../gateway/admin/live-snapshot.js'
import { defineCommand, NO_OPERANDS } from '../command.js'
import { columns, table } from '../table.js'
import { minuteOf } from '../text.js'
import { ask, KEY_HELP, LIVE, print } from './ask.js'

export const overrides = defineCommand({
  name: 'overrides',
  summary: 'List what was done on the admin port and what can be undone',
  operands: NO_OPERANDS,
  options: LIVE,
  details: `The newest 200 modes, access entries and resets, of all gateways on one Redis, the newest first. ${KEY_HELP}`,
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
