/** `sluice acts`: the acts performed on the admin port. */
import type { ToldAct } from '../../gateway/run/acts/act.js'
import { defineCommand, NO_OPERANDS } from '../command.js'
import { columns, table } from '../table.js'
import { minuteOf } from '../text.js'
import { ask, KEY_HELP, LIVE, tell } from './ask.js'

export const acts = defineCommand({
  name: 'acts',
  summary: 'List what was done on the admin port and what can be undone',
  operands: NO_OPERANDS,
  options: LIVE,
  details: `The newest 200 modes, access entries and resets, of all gateways on one Redis, the newest first. ${KEY_HELP}`,
  example: 'sluice acts --live http://127.0.0.1:8081',
  async run({ values }, io) {
    const told = await ask<{ readonly acts: readonly ToldAct[] }>({ path: '/acts' }, values.live, io)
    tell(told, values.json, io, ({ acts }) =>
      acts.length === 0 ? 'Nothing was done.\n' : table(COLUMNS, acts.map(rowOf), io.columns),
    )
    return 0
  },
})

const COLUMNS = columns(['time (UTC)', 'what', 'by', 'why', 'undo'])

function rowOf({ at, what, by, why, undo_call }: ToldAct): string[] {
  return [minuteOf(at), what, by, why ?? '', undo_call ?? '']
}
