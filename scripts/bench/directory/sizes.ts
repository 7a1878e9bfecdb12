/**
 * What single requests cost in a small and in a large directory: the same service, over HTTP, on SQLite, interleaved.
 */
import { Agent, request } from 'node:http'
import { start } from '../../../services/directory/index.js'
import { type Scope, scoped, temporaryFolder } from '../../../test/helpers/scope.js'
import { say } from '../../lib/run.mjs'
import { median, tableFrom } from '../../lib/table.js'
import type { Part } from './part.js'
import { seed, user } from './seed.js'

interface Place {
  /** What is measured, by name; each gets the number of the round. */
  readonly measured: Readonly<Record<string, (n: number) => Promise<unknown>>>
  /** A sentence on how long it takes to refuse queries that would scan the directory. */
  refused(): Promise<string>
}

const small = 1000
const rounds = 300
/** A request in the large directory may cost this many times what it costs in the small one. */
const atMost = 1.5
const key = 'bench-key-0123456789'
const quiet = { debug: () => {}, info: () => {}, warn: console.error, error: console.error }
/** Members of the one group. */
const mostMembers = 100_000

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** One HTTP request with a JSON response, without `fetch`, whose own cost is larger than the service's. */
function call<T>(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { method, agent, headers }, answer => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('end', () => {
        if (Number(answer.statusCode) >= 300)
          reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`))
        else resolve(JSON.parse(text || 'null'))
      })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** A running service with a directory of `count` users, and the requests that are measured there. */
async function prepare(t: Scope, count: number): Promise<Place> {
  const dataDir = temporaryFolder(t, 'bench')
  const env = { API_KEYS: key, DATA_DIR: dataDir }
  const manage = { authorization: `Api-Key ${key}`, 'content-type': 'application/json' }
  const first = await start({ env, log: quiet })
  const fields = { tenant: 'bench', product: 'bench' }
  type Made = { data: { id: string; scim: { path: string; secret: string } } }
  const { data } = await call<Made>(first.url, 'POST', '/api/v1/directory-sync', manage, fields)
  await first.close()
  const members = Math.min(mostMembers, count - rounds)
  const directory = { ...fields, id: data.id }
  const { groupId, outside, last } = await seed({ dataDir }, directory, { count, members })

  const service = await start({ env, log: quiet })
  t.teardown(() => service.close())
  const headers = { authorization: `Bearer ${data.scim.secret}`, 'content-type': 'application/scim+json' }
  const scim = (method: string, path: string, body?: object) =>
    call(service.url, method, `${data.scim.path}${path}`, headers, body)
  const list = (query: string) => call(service.url, 'GET', `/api/v1/directory-sync/${query}`, manage)
  const place = [new Date(Date.parse(last.created) - 100).toISOString(), '']
  const pageToken = Buffer.from(JSON.stringify(place)).toString('base64url')
  const memberPage = `groups/${groupId}/members?directoryId=${data.id}&pageLimit=50`
  const lastToken = Buffer.from(JSON.stringify(['', 'f'])).toString('base64url')
  const change = (path: string, operation: object) => scim('PATCH', path, { Operations: [operation] })
  const filter = (text: string) => `filter=${encodeURIComponent(text)}`
  const nth = (n: number) => `user-${(n * 7) % count}@example.com`
  return {
    measured: {
      'create a user': n => scim('POST', '/Users', user(`new-${n}`)),
      'find a user by userName': n => scim('GET', `/Users?${filter(`userName eq "${nth(n)}"`)}`),
      'change a user': n => change(`/Users/${outside[n]}`, { op: 'replace', path: 'title', value: `T${n}` }),
      'a page of users at the end, by token': () =>
        list(`users?directoryId=${data.id}&pageLimit=50&pageToken=${pageToken}`),
      'the first page of users by SCIM, with their number': () => scim('GET', '/Users?count=50'),
      'users by e-mail': n => list(`users?directoryId=${data.id}&email=${nth(n)}`),
      'a page of members at the end, by token': () => list(`${memberPage}&pageToken=${lastToken}`),
      'add one member to the group': n =>
        change(`/Groups/${groupId}`, { op: 'add', path: 'members', value: [{ value: outside[n] }] }),
      'remove one member of it': n =>
        change(`/Groups/${groupId}`, { op: 'remove', path: `members[value eq "${outside[n]}"]` }),
    },
    async refused() {
      const queries = {
        'userName sw': filter('userName sw "user-77"'),
        'lastModified gt': filter('meta.lastModified gt "2026-01-01T00:00:00Z"'),
        'title pr': filter('title pr'),
        sortBy: 'sortBy=userName',
      }
      const sentences = []
      for (const [name, query] of Object.entries(queries)) {
        const before = performance.now()
        const answer = await scim('GET', `/Users?${query}`).then(
          () => 'answered',
          (error: Error) => error.message,
        )
        const isRefused = answer.includes(': 400 ') && answer.includes('tooMany')
        const ms = (performance.now() - before).toFixed(1)
        sentences.push(`\`${name}\` is ${isRefused ? 'refused (400 tooMany)' : 'answered'} in ${ms} ms`)
      }
      return `Of ${count} users: ${sentences.join(', ')}.`
    },
  }
}

/** Median latency and median CPU time of this process for one kind of request in each directory, in ms, interleaved. */
async function measure(name: string, places: readonly Place[]) {
  const all = places.map(({ measured }) => ({ measured, waited: [] as number[], worked: [] as number[] }))
  for (let n = 0; n < rounds; n++) {
    for (const { measured, waited, worked } of all) {
      const before = performance.now()
      const cpu = process.cpuUsage()
      await measured[name]?.(n)
      const { user, system } = process.cpuUsage(cpu)
      waited.push(performance.now() - before)
      worked.push((user + system) / 1000)
    }
  }
  const [few = 0, many = 0] = all.map(({ worked }) => median(worked))
  const [early = 0, late = 0] = all.map(({ waited }) => median(waited))
  return { few, many, ratio: many / few, late: late / early }
}

/** One table, of a directory of `size` users and a group of up to 100,000. */
export const sizes: Part = ({ size }) =>
  scoped(async t => {
    say(`filling directories of ${small} and ${size} users ...`)
    const [few, many] = [await prepare(t, small), await prepare(t, size)]
    t.teardown(() => agent.destroy())
    const rows = []
    for (const name of Object.keys(few.measured)) rows.push({ name, ...(await measure(name, [few, many])) })
    const refused = await many.refused()
    const cells = rows.map(({ name, few, many, ratio, late }) => [
      name,
      ...[few, many, ratio, late].map(value => value.toFixed(2)),
    ])
    const head = ['', `CPU ms at ${small} users`, `CPU ms at ${size} users`, 'ratio of CPU', 'ratio of time']
    return {
      title: 'One directory, small and large',
      text: `${tableFrom(head, cells)}\n\n${refused}`,
      isReached: rows.every(({ ratio }) => ratio <= atMost),
    }
  })
