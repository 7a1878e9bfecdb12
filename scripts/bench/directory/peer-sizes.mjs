/** What the peer's requests cost in a small and in a large directory, interleaved, over HTTP (ours: sizes.mjs). */
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { inProject, say } from '../../lib/run.mjs'
import { installBeside } from '../install.mjs'
import { cpuUs } from '../processes.mjs'
import { median, tableFrom } from '../table.mjs'
import { PEER } from './creates.mjs'
import { user } from './seed.mjs'
import { startPeer } from './service.mjs'

const MODULES = inProject('.cache', 'bench-directory')
const small = 1000
const rounds = 100
const patch = n => ({ Operations: [{ op: 'replace', value: { title: `T${n}` } }] })

/** One table; the peer has no target. It gets a tenth of our number of users, because it is slower to fill. */
export async function peerSizes({ size }) {
  installBeside(MODULES, PEER)
  const counts = [small, Math.round(size / 10)]
  say(`filling directories of saml-jackson of ${counts.join(' and ')} users ...`)
  const places = []
  try {
    for (const count of counts) places.push(await prepare(count))
    const rows = []
    for (const name of Object.keys(places[0].measured)) rows.push([name, ...(await measure(name, places))])
    const head = ['', ...counts.map(count => `CPU ms at ${count} users`), 'ratio of CPU', 'ratio of time']
    return {
      title: 'One directory of saml-jackson, small and large',
      text: tableFrom(head, rows),
      kept: true,
    }
  } finally {
    for (const place of places) await place.close()
  }
}

async function prepare(count) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const env = { MODULES: join(MODULES, 'index.js'), FOLDER: folder, JOURNAL: 'wal' }
  const peer = await startPeer('saml-jackson.mjs', env)
  const { port, path, secret } = peer.told
  const ask = async (method, place, body) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const sent = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const answer = await fetch(`http://127.0.0.1:${port}${path}${place}`, sent)
    if (!answer.ok) throw new Error(`saml-jackson: ${method} ${place}: ${answer.status}`)
    return answer.json()
  }
  const first = await ask('POST', '/Users', user(0))
  fill(join(folder, 'jackson.db'), path.split('/').at(-1), first.id, count)
  const filter = n => encodeURIComponent(`userName eq "user-${(n * 7) % count}@example.com"`)
  return {
    pid: peer.pid,
    measured: {
      'create a user': n => ask('POST', '/Users', user(`new-${n}`)),
      'find a user by userName': n => ask('GET', `/Users?filter=${filter(n)}`),
      'change a user': n => ask('PATCH', `/Users/${first.id}`, patch(n)),
      'the first page of users by SCIM': () => ask('GET', '/Users?count=50&startIndex=1'),
    },
    async close() {
      await peer.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Fills the database with copies of the peer's first user, row by row in the form that the peer wrote it. */
function fill(file, directoryId, firstId, count) {
  const db = new Database(file)
  const digest = text => createHash('ripemd160').update(text).digest('hex')
  const space = 'dsync:users:bench:bench'
  const row = db.prepare('SELECT * FROM jackson_store WHERE key = ?').get(`${space}:${digest(firstId)}`)
  const store = db.prepare(
    'INSERT INTO jackson_store (key, value, namespace, modifiedAt) VALUES (?, ?, ?, ?)',
  )
  const index = db.prepare('INSERT INTO jackson_index (key, storeKey) VALUES (?, ?)')
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN')
  for (let n = 1; n < count; n++) {
    const id = randomUUID()
    const key = `${space}:${digest(id)}`
    const { userName } = user(n)
    const value = row.value.replaceAll(firstId, id).replaceAll(user(0).userName, userName)
    store.run([key, value, space, row.modifiedAt])
    index.run([`${space}:directoryIdUsername:${digest(`${directoryId}:${userName}`)}`, key])
    index.run([`${space}:directoryId:${digest(directoryId)}`, key])
  }
  db.exec('COMMIT')
  db.close()
}

/**
 * The cells of one row: the peer's CPU time per request in each directory, and the ratios of CPU time and of latency.
 */
async function measure(name, places) {
  const waited = places.map(() => [])
  const worked = places.map(() => 0)
  for (let n = 0; n < rounds; n++) {
    for (const [at, { pid, measured }] of places.entries()) {
      const [before, cpu] = [performance.now(), cpuUs(pid)]
      await measured[name](n)
      waited[at].push(performance.now() - before)
      worked[at] += (cpuUs(pid) - cpu) / 1000 / rounds
    }
  }
  const [few, many] = worked
  const late = median(waited[1]) / median(waited[0])
  return [few.toFixed(2), many.toFixed(2), (many / few).toFixed(2), late.toFixed(2)]
}
