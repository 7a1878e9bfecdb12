/**
 * `npm run judges [-- --only h2spec,autobahn,slow,clients,nghttp,grpc,servers]`: tests the built gateway with third-party programs, most of
 * them also without the gateway. Prints a table, and fails when one finds a fault (docs/proxy-conformance.md, Outside
 * judges).
 */
import { parseArgs } from 'node:util'
import { scoped } from '../test/helpers/scope.js'
import { judgeAutobahn } from './judges/autobahn.js'
import { judgeClients } from './judges/clients.js'
import { judgeGrpc } from './judges/grpc.js'
import { judgeH2spec } from './judges/h2spec.js'
import { Missing, needs } from './judges/install.js'
import { type Found, type Judge, makePlace } from './judges/judge.js'
import { judgeNghttp } from './judges/nghttp.js'
import { judgeServers } from './judges/servers.js'
import { judgeSlow } from './judges/slow.js'
import { Failure, say, script } from './lib/run.mjs'
import { tableFrom } from './lib/table.js'

const JUDGES: Record<string, Judge> = {
  h2spec: judgeH2spec,
  autobahn: judgeAutobahn,
  slow: judgeSlow,
  clients: judgeClients,
  nghttp: judgeNghttp,
  grpc: judgeGrpc,
  servers: judgeServers,
}

const { values } = parseArgs({
  options: { only: { type: 'string', default: Object.keys(JUDGES).join(',') } },
})

await script(() =>
  scoped(async t => {
    const names = values.only.split(',')
    if (!names.every(name => Object.hasOwn(JUDGES, name)))
      throw new Failure(`--only takes some of ${Object.keys(JUDGES).join(', ')}`)
    try {
      needs('openssl', 'The judges need openssl for a certificate: apt-get install openssl')
    } catch (error) {
      throw new Failure((error as Missing).message)
    }
    const place = makePlace(t)
    const found: Found[] = []
    for (const name of names) {
      say(`${name} ...`)
      found.push(await scoped(t => (JUDGES[name] as Judge)(t, place)).catch(error => skipped(name, error)))
    }
    const heads = ['judge', 'played', 'directly', 'through the gateway', 'verdict']
    const rows = found.flatMap(({ rows }) => rows)
    console.log(tableFrom(heads, rows))
    for (const note of found.flatMap(({ notes = [] }) => notes)) console.log(note)
    const faults = found.flatMap(({ faults }) => faults)
    if (faults.length > 0) throw new Failure(faults.join('\n'))
    say('no judge found a fault')
  }),
)

/** A judge that is not available gets a row of its own and is not a fault. */
function skipped(name: string, error: unknown): Found {
  if (!(error instanceof Missing)) throw error
  return { rows: [[name, '', '', '', `skipped: ${error.message}`]], faults: [] }
}
