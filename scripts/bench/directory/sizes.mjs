/** What single requests cost in a small and in a large directory: the same service, over HTTP, on SQLite, in turns. */
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inProject, say } from '../../lib/run.mjs'
import { median, tableFrom } from '../table.mjs'

const small = 1000
const rounds = 400
/** A request may cost this many times more in the large directory. */
const atMost = 1.5
const key = 'bench-key-0123456789'
const quiet = { debug: () => {}, info: () => {}, warn: console.error, error: console.error }

const built = file => import(inProject('dist', 'services', 'directory', file))
const { start } = await built('index.js')
const { openSqlite } = await built('store/sqlite.js')
const { newResource, save } = await built('sync/resources.js')

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** One HTTP request with a JSON answer. */
function call(url, method, path, headers, body) {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { method, agent, headers }, answer => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('end', () => {
        if (answer.statusCode >= 300) reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`))
        else resolve(text === '' ? undefined : JSON.parse(text))
      })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

const user = n => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName: `user-${n}@example.com`,
  externalId: `ext-${n}`,
  name: { givenName: 'Ada', familyName: `Lovelace ${n}` },
  emails: [{ primary: true, value: `user-${n}@example.com`, type: 'work' }],
  displayName: `Ada Lovelace ${n}`,
  active: true,
})

/** Fills a directory with users and one group of all of them but the last few, past HTTP: that is not what is measured. */
async function fill(dataDir, directory, count) {
  const store = openSqlite(join(dataDir, 'directory.db'))
  const ids = []
  const commit = async writes => {
    const head = await store.head(directory.id)
    const made = await store.commit(directory.id, head, { writes, events: [] })
    await made.kept
  }
  const base = Date.now() - count
  for (let from = 0; from < count; from += 1000) {
    const users = Array.from({ length: Math.min(1000, count - from) }, (_, n) =>
      newResource(directory, 'user', user(from + n), new Date(base + from + n).toISOString()),
    )
    await commit(users.map(each => save('create', each)))
    ids.push(...users.map(({ id }) => id))
  }
  const outside = ids.slice(-rounds)
  const raw = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], displayName: 'Everybody' }
  const group = newResource(directory, 'group', raw, new Date().toISOString())
  await commit([save('create', group), { kind: 'join', groupId: group.id, userIds: ids.slice(0, -rounds) }])
  await store.close()
  return { groupId: group.id, outside }
}

/** A running service with a directory of so many users, and the requests that are measured there. */
async function prepare(count) {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const env = { API_KEYS: key, DATA_DIR: dataDir }
  const manage = { authorization: `Api-Key ${key}`, 'content-type': 'application/json' }
  const first = await start({ env, log: quiet })
  const fields = { tenant: 'bench', product: 'bench' }
  const { data } = await call(first.url, 'POST', '/api/v1/directory-sync', manage, fields)
  await first.close()
  const { groupId, outside } = await fill(dataDir, { ...fields, id: data.id }, count)

  const service = await start({ env, log: quiet })
  const headers = { authorization: `Bearer ${data.scim.secret}`, 'content-type': 'application/scim+json' }
  const scim = (method, path, body) => call(service.url, method, `${data.scim.path}${path}`, headers, body)
  const list = query => call(service.url, 'GET', `/api/v1/directory-sync/${query}`, manage)
  const near = `users?directoryId=${data.id}&pageLimit=50&pageOffset=${count - 101}`
  const { pageToken } = await list(near)
  const memberPage = `groups/${groupId}/members?directoryId=${data.id}&pageLimit=50`
  const member = outside[0]
  const lastToken = Buffer.from(JSON.stringify(['', 'f'])).toString('base64url')
  return {
    count,
    measured: {
      'create a user': n => scim('POST', '/Users', user(`new-${n}`)),
      'find a user by userName': n =>
        scim(
          'GET',
          `/Users?filter=${encodeURIComponent(`userName eq "user-${(n * 7) % count}@example.com"`)}`,
        ),
      'change a user': n =>
        scim('PATCH', `/Users/${member}`, { Operations: [{ op: 'replace', path: 'title', value: `T${n}` }] }),
      'a page of users at the end, by token': () =>
        list(`users?directoryId=${data.id}&pageLimit=50&pageToken=${pageToken}`),
      'a page of members at the end, by token': () => list(`${memberPage}&pageToken=${lastToken}`),
      'add one member to the group of all': n =>
        scim('PATCH', `/Groups/${groupId}`, {
          Operations: [{ op: 'add', path: 'members', value: [{ value: outside[n] }] }],
        }),
      'remove one member of it': n =>
        scim('PATCH', `/Groups/${groupId}`, {
          Operations: [{ op: 'remove', path: `members[value eq "${outside[n]}"]` }],
        }),
    },
    async close() {
      await service.close()
      rmSync(dataDir, { recursive: true })
    },
  }
}

/** Median milliseconds of one kind of request in each place, taken in turns. */
async function measure(name, places) {
  const times = places.map(() => [])
  for (let n = 0; n < rounds; n++) {
    for (const [index, place] of places.entries()) {
      const before = performance.now()
      await place.measured[name](n)
      times[index].push(performance.now() - before)
    }
  }
  return times.map(median)
}

/** One table. `kept`: no request costs more than it may in a directory of `size` users and a group of nearly all of them. */
export async function sizes({ size }) {
  say(`filling directories of ${small} and ${size} users ...`)
  const places = [await prepare(small), await prepare(size)]
  const rows = []
  for (const name of Object.keys(places[0].measured)) {
    const [few, many] = await measure(name, places)
    rows.push({ name, few, many, ratio: many / few })
  }
  for (const place of places) await place.close()
  agent.destroy()
  const cells = rows.map(({ name, few, many, ratio }) => [
    name,
    few.toFixed(3),
    many.toFixed(3),
    ratio.toFixed(2),
  ])
  return {
    title: 'One directory, small and large',
    text: tableFrom(['', `ms at ${small} users`, `ms at ${size} users`, 'ratio'], cells),
    kept: rows.every(({ ratio }) => ratio <= atMost),
  }
}
