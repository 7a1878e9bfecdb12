/**
 * What single requests cost in a small and in a large directory: the same service, over HTTP, on SQLite, interleaved.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inProject, say } from '../../lib/run.mjs'
import { median, tableFrom } from '../table.mjs'
import { seed, user } from './seed.mjs'

const small = 1000
const rounds = 300
/** A request in the large directory may cost this many times what it costs in the small one. */
const atMost = 1.5
const key = 'bench-key-0123456789'
const quiet = { debug: () => {}, info: () => {}, warn: console.error, error: console.error }
/** Members of the one group. */
const mostMembers = 100_000

const { start } = await import(inProject('dist', 'services', 'directory', 'index.js'))

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** One HTTP request with a JSON response. */
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

/** A running service with a directory of `count` users, and the requests that are measured there. */
async function prepare(count) {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const env = { API_KEYS: key, DATA_DIR: dataDir }
  const manage = { authorization: `Api-Key ${key}`, 'content-type': 'application/json' }
  const first = await start({ env, log: quiet })
  const fields = { tenant: 'bench', product: 'bench' }
  const { data } = await call(first.url, 'POST', '/api/v1/directory-sync', manage, fields)
  await first.close()
  const members = Math.min(mostMembers, count - rounds)
  const directory = { ...fields, id: data.id }
  const { groupId, outside, last } = await seed({ dataDir }, directory, { count, members })

  const service = await start({ env, log: quiet })
  const headers = { authorization: `Bearer ${data.scim.secret}`, 'content-type': 'application/scim+json' }
  const scim = (method, path, body) => call(service.url, method, `${data.scim.path}${path}`, headers, body)
  const list = query => call(service.url, 'GET', `/api/v1/directory-sync/${query}`, manage)
  const place = [new Date(Date.parse(last.created) - 100).toISOString(), '']
  const pageToken = Buffer.from(JSON.stringify(place)).toString('base64url')
  const memberPage = `groups/${groupId}/members?directoryId=${data.id}&pageLimit=50`
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
        scim('PATCH', `/Users/${outside[n]}`, {
          Operations: [{ op: 'replace', path: 'title', value: `T${n}` }],
        }),
      'a page of users at the end, by token': () =>
        list(`users?directoryId=${data.id}&pageLimit=50&pageToken=${pageToken}`),
      'the first page of users by SCIM, with their number': () => scim('GET', '/Users?count=50'),
      'users by e-mail': n => list(`users?directoryId=${data.id}&email=user-${(n * 7) % count}@example.com`),
      'a page of members at the end, by token': () => list(`${memberPage}&pageToken=${lastToken}`),
      'add one member to the group': n =>
        scim('PATCH', `/Groups/${groupId}`, {
          Operations: [{ op: 'add', path: 'members', value: [{ value: outside[n] }] }],
        }),
      'remove one member of it': n =>
        scim('PATCH', `/Groups/${groupId}`, {
          Operations: [{ op: 'remove', path: `members[value eq "${outside[n]}"]` }],
        }),
    },
    /** How long it takes to refuse queries that would scan the directory. */
    async refused() {
      const asked = {
        'userName sw': `filter=${encodeURIComponent('userName sw "user-77"')}`,
        'lastModified gt': `filter=${encodeURIComponent('meta.lastModified gt "2026-01-01T00:00:00Z"')}`,
        'title pr': `filter=${encodeURIComponent('title pr')}`,
        sortBy: 'sortBy=userName',
      }
      const told = []
      for (const [name, query] of Object.entries(asked)) {
        const before = performance.now()
        const answer = await scim('GET', `/Users?${query}`).then(
          () => 'answered',
          error => error.message,
        )
        const how =
          answer.includes(': 400 ') && answer.includes('tooMany') ? 'refused (400 tooMany)' : 'answered'
        told.push(`\`${name}\` is ${how} in ${(performance.now() - before).toFixed(1)} ms`)
      }
      return `Of ${count} users: ${told.join(', ')}.`
    },
    async close() {
      await service.close()
      rmSync(dataDir, { recursive: true })
    },
  }
}

/** Median latency and median CPU time of this process for one kind of request in each directory, in ms, interleaved. */
async function measure(name, places) {
  const times = places.map(() => ({ waited: [], worked: [] }))
  for (let n = 0; n < rounds; n++) {
    for (const [index, place] of places.entries()) {
      const before = performance.now()
      const cpu = process.cpuUsage()
      await place.measured[name](n)
      const { user, system } = process.cpuUsage(cpu)
      times[index].waited.push(performance.now() - before)
      times[index].worked.push((user + system) / 1000)
    }
  }
  return times.map(({ waited, worked }) => ({ waited: median(waited), worked: median(worked) }))
}

/** One table. `kept`: no request exceeds `atMost` in a directory of `size` users and a group of up to 100,000. */
export async function sizes({ size }) {
  say(`filling directories of ${small} and ${size} users ...`)
  const places = [await prepare(small), await prepare(size)]
  const rows = []
  for (const name of Object.keys(places[0].measured)) {
    const [few, many] = await measure(name, places)
    rows.push({ name, few, many, ratio: many.worked / few.worked, late: many.waited / few.waited })
  }
  const refused = await places[1].refused()
  for (const place of places) await place.close()
  agent.destroy()
  const cells = rows.map(({ name, few, many, ratio, late }) => [
    name,
    few.worked.toFixed(2),
    many.worked.toFixed(2),
    ratio.toFixed(2),
    late.toFixed(2),
  ])
  const head = ['', `CPU ms at ${small} users`, `CPU ms at ${size} users`, 'ratio of CPU', 'ratio of time']
  return {
    title: 'One directory, small and large',
    text: `${tableFrom(head, cells)}\n\n${refused}`,
    kept: rows.every(({ ratio }) => ratio <= atMost),
  }
}
