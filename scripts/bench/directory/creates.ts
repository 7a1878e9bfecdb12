/**
 * SCIM creates over HTTP: the directory service compared with @boxyhq/saml-jackson, each on a SQLite file of its own.
 */
import { type Scope, scoped, temporaryFolder } from '../../../test/helpers/scope.js'
import { say } from '../../lib/run.mjs'
import { loadOn } from '../load.js'
import { needs } from '../machine.js'
import { medianOf, type Sample, type Samples, tableOf } from '../table.js'
import { type Directory, installJackson, type Part, startDirectory, startJackson } from './part.js'

const CONNECTIONS = [1, 8, 32]
const WARM_UP_SECONDS = 3
/** Our creates per second must be at least this many times those of the peer's default settings. */
const AIM = 3

type Start = (t: Scope, folder: string) => Promise<Directory>

const PEER = 'saml-jackson, default'
const OURS = 'Sluice directory, default'
const CONTESTANTS: Record<string, Start> = {
  [PEER]: (t, folder) => startJackson(t, folder, 'delete'),
  'saml-jackson, write-ahead log': (t, folder) => startJackson(t, folder, 'wal'),
  [OURS]: (t, folder) => startDirectory(t, folder),
}

/** One table per number of connections. */
export const creates: Part = async ({ rounds, seconds }) => {
  needs('taskset', 'wrk')
  installJackson()
  const contestants = Object.entries(CONTESTANTS)
  const tables = CONNECTIONS.map(connections => ({
    connections,
    rows: contestants.map(([label, start]): Samples & { start: Start } => ({ label, start, samples: [] })),
  }))
  for (let round = 0; round < rounds; round += 1) {
    for (const { connections, rows } of tables) {
      for (const { label, start, samples } of rows) {
        const sample = await scoped(t => measure(t, start, connections, seconds))
        samples.push(sample)
        const { rps, us, p50 } = sample
        say(`${label}, ${connections} connections: ${rps.toFixed(0)}/s, ${us.toFixed(0)} µs, p50 ${p50} ms`)
      }
    }
  }
  const titled = tables.map(
    ({ connections, rows }) =>
      `### ${connections} connection${connections === 1 ? '' : 's'}\n\n${tableOf(rows)}`,
  )
  const rps = (rows: readonly Samples[], wanted: string) =>
    rows.filter(({ label }) => label === wanted).map(row => medianOf(row, 'rps'))[0] ?? 0
  return {
    title: 'SCIM creates beside saml-jackson',
    text: titled.join('\n\n'),
    isReached: tables.every(({ rows }) => rps(rows, OURS) >= AIM * rps(rows, PEER)),
  }
}

/** One sample: a fresh process on an empty database, warmed up, then measured. */
async function measure(t: Scope, start: Start, connections: number, seconds: number) {
  const { pid, port, path, secret } = await start(t, temporaryFolder(t, 'bench'))
  const create = (names: string, length: number) =>
    loadOn(pid, port, {
      ...{ connections, seconds: length, script: 'creates.lua', args: [path, secret, names] },
    })
  await create('warm-', WARM_UP_SECONDS)
  const { requests, others, ...sample } = await create('user-', seconds)
  if (others > 0) throw new Error(`${others} of ${requests} creates were refused`)
  return sample satisfies Sample
}
