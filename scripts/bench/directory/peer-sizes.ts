/** What the peer's requests cost in a small and in a large directory, interleaved, over HTTP (ours: sizes.mjs). */
import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import Database from 'libsql'
import { type Scope, scoped, temporaryFolder } from '../../../test/helpers/scope.js'
import { say } from '../../lib/run.mjs'
import { median, tableFrom } from '../../lib/table.js'
import { cpuUs } from '../machine.js'
import { call, installJackson, type Part, startJackson } from './part.js'
import { user } from './seed.js'

interface Place {
  readonly pid: number
  /** What is measured, by name; each gets the number of the round. */
  readonly measured: Readonly<Record<string, (n: number) => Promise<unknown>>>
}

const small = 1000
const rounds = 100
const patch = (n: number) => ({ Operations: [{ op: 'replace', value: { title: `T${n}` } }] })

/** One table; the peer has no target. It gets a tenth of our number of users, because it is slower to fill. */
export const peerSizes: Part = ({ size }) =>
  scoped(async t => {
    installJackson()
    const counts = [small, Math.round(size / 10)]
    say(`filling directories of saml-jackson of ${counts.join(' and ')} users ...`)
    const places = []
    for (const count of counts) places.push(await prepare(t, count))
    const rows = []
    for (const name of Object.keys(places[0]?.measured ?? {}))
      rows.push([name, ...(await measure(name, places))])
    const head = ['', ...counts.map(count => `CPU ms at ${count} users`), 'ratio of CPU', 'ratio of time']
    const title = 'One directory of saml-jackson, small and large'
    return { title, text: tableFrom(head, rows), isReached: true }
  })

async function prepare(t: Scope, count: number): Promise<Place> {
  const folder = temporaryFolder(t, 'bench')
  const { pid, port, path, secret } = await startJackson(t, folder, 'wal')
  const ask = <T>(method: string, place: string, body?: object) => {
    const to = { method, path: path + place, authorization: `Bearer ${secret}`, body }
    return call<T>(`http://127.0.0.1:${port}`, to)
  }
  const first = await ask<{ id: string }>('POST', '/Users', user(0))
  fill(join(folder, 'jackson.db'), path.split('/').at(-1) ?? '', first.id, count)
  const filter = (n: number) => encodeURIComponent(`userName eq "user-${(n * 7) % count}@example.com"`)
  return {
    pid,
    measured: {
      'create a user': n => ask('POST', '/Users', user(`new-${n}`)),
      'find a user by userName': n => ask('GET', `/Users?filter=${filter(n)}`),
      'change a user': n => ask('PATCH', `/Users/${first.id}`, patch(n)),
      'the first page of users by SCIM': () => ask('GET', '/Users?count=50&startIndex=1'),
    },
  }
}

/** Fills the database with copies of the peer's first user, row by row in the form that the peer wrote it. */
function fill(file: string, directoryId: string, firstId: string, count: number): void {
  const db = new Database(file)
  const digest = (text: string) => createHash('ripemd160').update(text).digest('hex')
  const space = 'dsync:users:bench:bench'
  const selected = db.prepare('SELECT * FROM jackson_store WHERE key = ?').get(`${space}:${digest(firstId)}`)
  const row = selected as { value: string; modifiedAt: string }
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
async function measure(name: string, places: readonly Place[]): Promise<string[]> {
  const all = places.map(place => ({ ...place, waited: [] as number[], worked: 0 }))
  for (let n = 0; n < rounds; n++) {
    for (const place of all) {
      const [before, cpu] = [performance.now(), cpuUs(place.pid)]
      await place.measured[name]?.(n)
      place.waited.push(performance.now() - before)
      place.worked += (cpuUs(place.pid) - cpu) / 1000 / rounds
    }
  }
  const [few = 0, many = 0] = all.map(({ worked }) => worked)
  const [early = 0, late = 0] = all.map(({ waited }) => median(waited))
  return [few, many, many / few, late / early].map(value => value.toFixed(2))
}
