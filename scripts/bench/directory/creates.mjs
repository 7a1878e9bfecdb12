/**
 * SCIM creates over HTTP: the directory service compared with @boxyhq/saml-jackson, each on a SQLite file of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inProject, say } from '../../lib/run.mjs'
import { installBeside } from '../install.mjs'
import { loadOn } from '../load.mjs'
import { require } from '../processes.mjs'
import { median, tableOf } from '../table.mjs'
import { startDirectory, startPeer } from './service.mjs'

const MODULES = inProject('.cache', 'bench-directory')
export const PEER = { '@boxyhq/saml-jackson': '26.2.0' }
const CONNECTIONS = [1, 8, 32]
const WARM_UP_SECONDS = 3
/** Our creates per second must be at least this many times the peer's. */
const AIM = 3

const startJackson = journal => folder =>
  startPeer('saml-jackson.mjs', { MODULES: join(MODULES, 'index.js'), FOLDER: folder, JOURNAL: journal })

const CONTESTANTS = [
  { label: 'saml-jackson, default', start: startJackson('delete') },
  { label: 'saml-jackson, write-ahead log', start: startJackson('wal') },
  { label: 'Sluice directory, default', start: folder => startDirectory(folder) },
]

/**
 * One table per number of connections. `kept`: in each, ours reached the target against the peer's default settings.
 */
export async function creates({ rounds, seconds }) {
  require('taskset', 'wrk')
  installBeside(MODULES, PEER)
  const tables = CONNECTIONS.map(connections => ({
    connections,
    rows: CONTESTANTS.map(({ label }) => ({ label, samples: [] })),
  }))
  for (let round = 0; round < rounds; round += 1) {
    for (const { connections, rows } of tables) {
      for (const [at, { label, samples }] of rows.entries()) {
        const sample = await measure(CONTESTANTS[at], connections, seconds)
        samples.push(sample)
        say(
          `${label}, ${connections} connections: ${sample.rps.toFixed(0)}/s, ${sample.us.toFixed(0)} µs, p50 ${sample.p50} ms`,
        )
      }
    }
  }
  const text = tables.map(
    ({ connections, rows }) =>
      `### ${connections} connection${connections === 1 ? '' : 's'}\n\n${tableOf(rows)}`,
  )
  return {
    title: 'SCIM creates beside saml-jackson',
    text: text.join('\n\n'),
    kept: tables.every(({ rows }) => rps(rows.at(-1)) >= AIM * rps(rows[0])),
  }
}

const rps = ({ samples }) => median(samples.map(sample => sample.rps))

/** One sample: a fresh process on an empty database, warmed up, then measured. */
async function measure(contestant, connections, seconds) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const running = await contestant.start(folder)
  const { port, path, secret } = running.told
  const create = (names, length) =>
    loadOn(
      { pid: running.pid, port },
      { connections, seconds: length, script: 'creates.lua', args: [path, secret, names] },
    )
  try {
    await create('warm-', WARM_UP_SECONDS)
    const { requests, others, ...sample } = await create('user-', seconds)
    if (others > 0) throw new Error(`${contestant.label}: ${others} of ${requests} creates were refused`)
    return sample
  } finally {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
