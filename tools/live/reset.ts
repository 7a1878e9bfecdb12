/** `sluice reset`: resets one counter of the running gateway. */
import { defineCommand } from '../command.js'
import { printable } from '../text.js'
import { ask, KEY_HELP, LIVE, print, REASON } from './ask.js'
import { PARTS, partsOf } from './parts.js'

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
