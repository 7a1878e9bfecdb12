/** The process is killed at random moments while identity providers write: `KILLS` times (default 3), by `SEED`. */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../helpers/mongo.js'
import { waitUntil } from '../../helpers/wait.js'
import { apiKey, okta, patchOp, type Received, startReceiver } from './harness.js'
import { type ServiceProcess, startServiceProcess } from './service-process.js'

const kills = Number(process.env.KILLS ?? 3)
const seed = Number(process.env.SEED ?? 1)

/** Mulberry32: numbers from 0 to 1, reproducible by seed. */
function randomNumbers(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Connection {
  readonly id: string
  readonly secret: string
}

/** Calls the current process of the service; waits while it is restarted. */
function caller(current: () => ServiceProcess) {
  return async (method: string, path: string, authorization: string, body?: object) => {
    const headers = { authorization, ...(body ? { 'content-type': 'application/json' } : {}) }
    const request = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const answer = await fetch(`${current().url}${path}`, request)
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
  }
}
type Call = ReturnType<typeof caller>

const manage = (call: Call, method: string, path: string, body?: object) =>
  call(method, `/api/v1/directory-sync${path}`, `Api-Key ${apiKey}`, body)

/** An identity provider that creates, changes and deletes users and groups until it is stopped. */
async function write(
  call: Call,
  { id, secret }: Connection,
  random: () => number,
  tally: { answered: number; stopped: boolean },
) {
  const users: string[] = []
  const groups: string[] = []
  let made = 0
  const scim = (method: string, path: string, body?: object) =>
    call(method, `/api/scim/v2.0/${id}${path}`, `Bearer ${secret}`, body)
  const one = (list: string[]) => list[Math.floor(random() * list.length)]
  while (!tally.stopped) {
    try {
      const [user, group, dice] = [one(users), one(groups), random()]
      const name = `${Math.floor(random() * 1e9)}-${made++}`
      let status: number
      if (!user || dice < 0.35) {
        const answer = await scim('POST', '/Users', okta(name))
        status = answer.status
        if (status === 201) users.push(answer.body.id)
      } else if (!group || dice < 0.4) {
        const answer = await scim('POST', '/Groups', { displayName: name, members: [{ value: user }] })
        status = answer.status
        if (status === 201) groups.push(answer.body.id)
      } else if (dice < 0.6) {
        const change = { op: 'replace', value: { displayName: name } }
        status = (await scim('PATCH', `/Users/${user}`, patchOp(change))).status
      } else if (dice < 0.9) {
        const op = dice < 0.8 ? 'add' : 'remove'
        const change = { op, path: 'members', value: [{ value: user }] }
        status = (await scim('PATCH', `/Groups/${group}`, patchOp(change))).status
      } else if (dice < 0.97) {
        status = (await scim('DELETE', `/Users/${user}`)).status
        if (status < 300) users.splice(users.indexOf(user), 1)
      } else {
        status = (await scim('DELETE', `/Groups/${group}`)).status
        if (status < 300) groups.splice(groups.indexOf(group), 1)
      }
      if (status < 300) tally.answered++
    } catch {
      await sleep(20)
    }
  }
}

/** A receiver's state after processing events in order: users by id, and groups with their members. */
function replay(events: Received['event'][]) {
  const users = new Map<string, string>()
  const groups = new Map<string, { name: string; members: Set<string> }>()
  for (const { event, data } of events) {
    if (event === 'user.created' || event === 'user.updated') users.set(data.id, data.raw.displayName)
    if (event === 'user.deleted') users.delete(data.id)
    if (event === 'group.created' || event === 'group.updated') {
      groups.set(data.id, { name: data.name, members: groups.get(data.id)?.members ?? new Set() })
    }
    if (event === 'group.deleted') groups.delete(data.id)
    if (event === 'group.user_added') groups.get(data.group.id)?.members.add(data.id)
    if (event === 'group.user_removed') groups.get(data.group.id)?.members.delete(data.id)
  }
  const shown = [...groups].map(([id, { name, members }]) => [id, name, [...members].sort()])
  return { users: [...users].sort(), groups: shown.sort() }
}

/** All pages of a list. */
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function pages(call: Call, path: string, token: 'pageToken' | 'cursor'): Promise<any[]> {
  const all = []
  for (let next = ''; ; ) {
    const { body } = await manage(call, 'GET', `${path}pageLimit=500&${token}=${next}`)
    all.push(...body.data)
    if (!body[token] || body.data.length === 0) return all
    next = body[token]
  }
}

async function state(call: Call, id: string) {
  const users = await pages(call, `/users?directoryId=${id}&`, 'pageToken')
  const groups = await pages(call, `/groups?directoryId=${id}&`, 'pageToken')
  const shown = groups.map(async group => {
    const members = await pages(
      call,
      `/groups/${group.id}/members?directoryId=${id}&pageOffset=0&`,
      'pageToken',
    )
    return [group.id, group.name, members.map(member => member.user_id).sort()]
  })
  const named: [string, string][] = users.map(user => [user.id, user.raw.displayName])
  return { users: named.sort(), groups: (await Promise.all(shown)).sort() }
}

async function crash(t: Test, env: Record<string, string>): Promise<void> {
  t.setTimeout(60_000 + kills * 10_000)
  const random = randomNumbers(seed)
  const receiver = await startReceiver(t, () => (random() < 0.003 ? 500 : 204))
  const settings = { API_KEYS: apiKey, DATA_DIR: t.testdir(), WEBHOOK_ALLOW_PRIVATE: 'true', ...env }
  let service = await startServiceProcess(t, settings)
  const call = caller(() => service)
  const connections: Connection[] = []
  for (const tenant of ['a', 'b', 'c']) {
    const webhook = { webhook_url: receiver.url, webhook_secret: 'hush-hush' }
    const { body } = await manage(call, 'POST', '', { tenant, product: 'app', ...webhook })
    connections.push({ id: body.data.id, secret: body.data.scim.secret })
  }

  const tally = { answered: 0, stopped: false }
  const writers = [...connections, ...connections].map(each => write(call, each, random, tally))
  for (let kill = 0; kill < kills; kill++) {
    const enough = tally.answered + 1 + random() * 20
    await waitUntil('some changes', () => tally.answered >= enough, 30_000)
    await sleep(random() * 50)
    await service.kill()
    service = await startServiceProcess(t, settings)
  }
  tally.stopped = true
  await Promise.all(writers)

  // The next change of a directory finishes one that the last kill interrupted.
  for (const { id, secret } of connections) {
    const path = `/api/scim/v2.0/${id}/Users`
    t.equal((await call('POST', path, `Bearer ${secret}`, okta('last'))).status, 201)
  }

  let told = 0
  let repeated = 0
  for (const { id } of connections) {
    const feed = await pages(call, `/feed?directoryId=${id}&`, 'cursor')
    const calls = () => receiver.calls.map(({ event }) => event).filter(event => event.directory_id === id)
    await waitUntil(
      `all ${feed.length} events`,
      () => new Set(calls().map(event => event.id)).size >= feed.length,
      60_000,
    )
    const firsts = [...new Map([...calls()].reverse().map(event => [event.id, event])).values()].reverse()
    t.same(firsts, feed, 'the receiver got exactly the events of the feed, in order of first arrival')
    t.same(
      feed.map(event => event.sequence),
      feed.map((_, index) => index + 1),
    )
    t.same(replay(firsts), await state(call, id), 'replaying the received events gives the stored state')
    told += feed.length
    repeated += calls().length - firsts.length
  }
  t.comment(`${kills} kills, ${tally.answered} changes confirmed, ${told} events, ${repeated} sent again`)
}

t.jobs = 2
t.setTimeout(60_000 + kills * 10_000)
t.test(
  'SQLite: a service killed during writes loses no event, and delivers each under one id and in order',
  async t => crash(t, {}),
)
t.test(
  'MongoDB: a service killed during writes loses no event, and delivers each under one id and in order',
  async t => {
    const MONGODB_URL = await mongoUrl(t)
    if (MONGODB_URL !== undefined) await crash(t, { MONGODB_URL })
  },
)
