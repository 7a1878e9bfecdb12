/**
 * Do webhooks keep up? A directory service gets changes that produce `rate` events a second, spread over one and over
 * ten directories, and sends them to a receiver on loopback; then a long queue is drained. On SQLite, or on
 * MONGODB_URL.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startApp } from '../../../test/helpers/http.js'
import { type Scope, scoped, temporaryFolder } from '../../../test/helpers/scope.js'
import { say } from '../../lib/run.mjs'
import { median, tableFrom } from '../../lib/table.js'
import { call, type Directory, type Part, startDirectory } from './part.js'

interface Event {
  readonly created_at: string
}
interface Receiver {
  readonly url: string
  /** Gets every event from now on. */
  watch(event: Event): void
}
interface Bench {
  readonly receiver: Receiver
  readonly service: Directory
}

const rate = 500
const seconds = 20
const counts = [1, 10]
const queueLength = 10_000
/** In ms. An event that arrives later than this shows that the queue grows. */
const latest = 2000

/** A table and a sentence; the target is that every event arrives, none later than `latest`. */
export const webhooks: Part = () =>
  scoped(async t => {
    const receiver = await startReceiver(t)
    const env = { WEBHOOK_ALLOW_PRIVATE: 'true' }
    const bench = { receiver, service: await startDirectory(t, temporaryFolder(t, 'bench'), env) }
    const rows = []
    for (const count of counts) {
      say(`${rate} events a second from ${count} ${count === 1 ? 'directory' : 'directories'} ...`)
      const groups: Group[] = []
      while (groups.length < count) groups.push(await makeGroup(bench, rate / count))
      rows.push({ count, ...(await steady(bench, groups)) })
    }
    const drained = await drain(bench)
    const cells = rows.map(({ count, arrived, perSecond, p50, p99, last }) =>
      [count, arrived, perSecond.toFixed(0), p50, p99, last].map(String),
    )
    const head = ['directories', 'events', 'events/s', 'p50 ms', 'p99 ms', 'latest ms']
    return {
      title: `Webhooks at ${rate} events a second`,
      text: `${tableFrom(head, cells)}\n\nA queue of ${queueLength} events of one directory goes out at ${drained.toFixed(0)} a second.`,
      isReached: rows.every(({ arrived, last }) => arrived === rate * seconds && last <= latest),
    }
  })

/** Events at a steady rate, and how late they arrived. */
async function steady({ receiver }: Bench, groups: readonly Group[]) {
  const ages: number[] = []
  receiver.watch = event => ages.push(Date.now() - Date.parse(event.created_at))
  const begin = performance.now()
  for (let second = 0; second < seconds; second++) {
    await sleep(begin + second * 1000 - performance.now())
    const op = second % 2 === 0 ? 'add' : 'remove'
    await Promise.all(groups.map(group => group.members(op)))
  }
  await until(() => ages.length >= rate * seconds, 60_000)
  const took = (performance.now() - begin) / 1000
  ages.sort((a, b) => a - b)
  return {
    arrived: ages.length,
    perSecond: ages.length / took,
    p50: median(ages),
    p99: ages[Math.floor(ages.length * 0.99)] ?? 0,
    last: ages.at(-1) ?? 0,
  }
}

/** Events a second at which one directory's queue is drained. */
async function drain(bench: Bench): Promise<number> {
  const group = await makeGroup(bench, rate)
  let arrived = 0
  bench.receiver.watch = () => {
    arrived++
  }
  const begin = performance.now()
  for (let made = 0; made < queueLength; made += rate) {
    await group.members(made % (2 * rate) === 0 ? 'add' : 'remove')
  }
  await until(() => arrived >= queueLength, 120_000)
  return arrived / ((performance.now() - begin) / 1000)
}

interface Group {
  /** Adds or removes all users. */
  members(op: 'add' | 'remove'): Promise<unknown>
}

/** A directory with a group and `size` users, whose events so far have been delivered. */
async function makeGroup({ receiver, service: { port, key } }: Bench, size: number): Promise<Group> {
  let arrived = 0
  receiver.watch = () => {
    arrived++
  }
  const url = `http://127.0.0.1:${port}`
  const webhook = { webhook_url: receiver.url, webhook_secret: 'bench-secret' }
  const { data } = await call<{ data: { scim: Pick<Directory, 'path' | 'secret'> } }>(url, {
    ...{ method: 'POST', path: '/api/v1/directory-sync', authorization: `Api-Key ${key}` },
    body: { tenant: `t${performance.now()}`, product: 'bench', ...webhook },
  })
  const { path, secret } = data.scim
  const scim = (method: string, place: string, body: object) =>
    call<{ id: string }>(url, { method, path: path + place, authorization: `Bearer ${secret}`, body })
  const users: { value: string }[] = []
  for (let n = 0; n < size; n++) {
    const { id } = await scim('POST', '/Users', { userName: `user-${n}` })
    users.push({ value: id })
  }
  const { id } = await scim('POST', '/Groups', { displayName: 'Everybody' })
  await until(() => arrived > size, 60_000)
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
  const members = (op: 'add' | 'remove') =>
    scim('PATCH', `/Groups/${id}`, { schemas, Operations: [{ op, path: 'members', value: users }] })
  return { members }
}

async function until(condition: () => boolean, limit: number): Promise<void> {
  const deadline = performance.now() + limit
  while (!condition() && performance.now() < deadline) await sleep(5)
}

async function startReceiver(t: Scope): Promise<Receiver> {
  const receiver = { watch: (_event: Event): void => undefined, url: '' }
  const url = await startApp(t, async (request, response) => {
    const text = (await request.toArray()).join('')
    response.writeHead(204).end()
    receiver.watch(JSON.parse(text))
  })
  receiver.url = `${url}/`
  return receiver
}
