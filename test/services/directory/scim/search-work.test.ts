/** What searches of one tenant may cost: everybody else's requests wait for them. */
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { createSearchQueue } from '../../../../services/directory/sync/search-queue.js'
import { clientGone } from '../../../../services/directory/sync/yield.js'
import { cpuMs } from '../../../helpers/cpu-time.js'
import { onEachDatabase } from '../databases.js'
import { type Directory, okta, type Service } from '../harness.js'
import { refusal } from './tools.js'

const emails = Array.from({ length: 1000 }, (_, n) => ({ value: `e${n}` }))
/** `count` conditions that no e-mail address meets. */
const conditions = (count: number): string => Array(count).fill('emails co "~"').join(' or ')

async function users({ scim }: Directory, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const { status } = await scim('POST', '/Users', okta(`user${n}`, { emails }))
    if (status !== 201) throw new Error(`the user was answered ${status}`)
  }
}

/** A search that takes a good part of what one may cost. */
const long = { filter: conditions(220), sortBy: 'emails.value' }

onEachDatabase(
  t,
  'a search that would compare more than three million values is refused',
  async (t, service) => {
    const directory = await service.directory()
    await users(directory, 14)
    const answer = await directory.scim('POST', '/Users/.search', long)
    t.match(answer, refusal(400, 'tooMany'))
    t.match(answer.body.detail, /^More than 3000000 values would have to be compared/)
    const half = await directory.scim('POST', '/Users/.search', { ...long, filter: conditions(110) })
    t.match(half, { status: 200, body: { totalResults: 0 } }, 'half of the conditions are compared')
  },
)

onEachDatabase(t, 'a search ends when its client has gone', async (t, service) => {
  const directory = await service.directory()
  await users(directory, 13)
  const whole = () => directory.scim('POST', '/Users/.search', long)
  const one = await cpuMs(whole)
  const many = await cpuMs(async () => {
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 5 }, () => leave(service, directory)))
    }
    t.equal((await whole()).status, 200, 'the next one does not wait for them')
  })
  t.ok(
    many < 8 * one,
    `20 abandoned searches and a whole one took ${Math.round(many)} ms, a whole one ${Math.round(one)} ms`,
  )
  t.notOk(
    service.logged.some(entry => entry.includes('request failed')),
    'this is no failure of the service',
  )
})

/** Sends a long search, and leaves when another request that was sent after it has been answered. */
async function leave({ url }: Service, { id, secret, scim }: Directory): Promise<void> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const asked = request(`${url}/api/scim/v2.0/${id}/Users/.search`, { method: 'POST', headers, agent: false })
  asked.on('error', () => undefined)
  asked.end(JSON.stringify(long))
  await once(asked, 'finish')
  await scim('GET', '/Users?count=0')
  asked.destroy()
}

onEachDatabase(
  t,
  'long searches of a directory run one at a time, and too many are sent away',
  async (t, service) => {
    const directory = await service.directory()
    await users(directory, 13)
    const search = () => directory.scim('POST', '/Users/.search', long)
    const answers = await Promise.all(Array.from({ length: 8 }, search))
    t.same(
      answers.map(({ status }) => status).sort(),
      [200, 200, 200, 200, 200, 200, 429, 429],
      'one runs, and five wait',
    )
    const refused = answers.find(({ status }) => status === 429)
    t.match(refused, refusal(429))
    t.equal(refused?.headers.get('retry-after'), '1')
    t.match(await search(), { status: 200 }, 'afterwards there is room again')
  },
)

t.test('whoever waits for a search of the directory leaves the queue with its client', async t => {
  const queue = createSearchQueue()
  const end = await queue('a')
  const left = new AbortController()
  const waiting = queue('a', left.signal)
  const next = queue('a')
  left.abort()
  await t.rejects(waiting, clientGone())
  t.equal(typeof (await queue('b')), 'function', 'another directory does not wait')
  let begun = false
  next.then(() => {
    begun = true
  })
  await Promise.resolve()
  t.equal(begun, false)
  end()
  ;(await next)()
  await t.rejects(queue('a', left.signal), clientGone(), 'one that has left already does not search')
})
