/**
 * `npm run judges [-- --only h2spec,autobahn,slow,clients,servers]`: tests the built gateway with third-party programs, most of
 * them also without the gateway. Prints a table, and fails when one finds a fault (docs/proxy-conformance.md, Outside
 * judges).
 */
import { parseArgs } from 'node:util'
import { judgeAutobahn } from './judges/autobahn.mjs'
import { judgeClients } from './judges/clients.mjs'
import { makeFolder } from './judges/gateway.mjs'
import { judgeH2spec } from './judges/h2spec.mjs'
import { Missing, needs } from './judges/install.mjs'
import { judgeServers } from './judges/servers.mjs'
import { judgeSlow } from './judges/slow.mjs'
import { Failure, say, script } from './lib/run.mjs'

const JUDGES = {
  h2spec: judgeH2spec,
  autobahn: judgeAutobahn,
  slow: judgeSlow,
  clients: judgeClients,
  servers: judgeServers,
}
const HEADS = ['judge', 'played', 'directly', 'through the gateway', 'verdict']

const { values } = parseArgs({
  options: { only: { type: 'string', default: Object.keys(JUDGES).join(',') } },
})

await script(async () => {
  const names = values.only.split(',')
  const unknown = names.filter(name => !Object.hasOwn(JUDGES, name))
  if (unknown.length > 0) throw new Failure(`--only takes some of ${Object.keys(JUDGES).join(', ')}`)
  const rows = []
  const faults = []
  const notes = []
  try {
    needs('openssl', 'The judges need openssl for a certificate: apt-get install openssl')
    const folder = makeFolder()
    for (const name of names) {
      say(`${name} ...`)
      const found = await judged(name, folder)
      rows.push(...found.rows)
      faults.push(...found.faults)
      notes.push(...found.notes)
    }
  } catch (error) {
    if (error instanceof Missing) throw new Failure(error.message)
    throw error
  }
  console.log(table(HEADS, rows))
  for (const note of notes) console.log(note)
  if (faults.length > 0) throw new Failure(faults.join('\n'))
  say('no judge found a fault')
})

/** A judge that is not available gets a row of its own and is not a fault. */
async function judged(name, folder) {
  try {
    const { row, rows = [row], faults, notes } = await JUDGES[name](folder)
    return { rows, faults, notes }
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    return { rows: [[name, '', '', '', `skipped: ${error.message}`]], faults: [], notes: [] }
  }
}

function table(heads, rows) {
  const line = cells => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}
