/**
 * Do webhooks keep up? A directory service gets changes that produce `rate` events a second, spread over one and over
 * ten directories, and sends them to a receiver on loopback; then a long queue is drained. On SQLite, or on
 * MONGODB_URL.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { say } from '../../lib/run.mjs'
import { median, tableFrom } from '../table.mjs'
import { startDirectory } from './service.mjs'

const rate = 500
const seconds = 20
const counts = [1, 10]
const queueLength = 10_000
/** In ms. An event that arrives later than this shows that the queue grows. */
const latest = 2000

/** A table and a sentence. `kept`: every event arrived, none later than `latest`. */
export async function webhooks() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const receiver = await startReceiver()
  const service = await startDirectory(folder, { WEBHOOK_ALLOW_PRIVATE: 'true' })
  const bench = { receiver, told: service.told }
  try {
    const rows = []
    for (const count of counts) {
      say(`${rate} events a second from ${count} ${count === 1 ? 'directory' : 'directories'} ...`)
      const directories = []
      while (directories.length < count) directories.push(await makeDirectory(bench, rate / count))
      rows.push({ count, ...(await steady(bench, directories)) })
    }
    const drained = await drain(bench)
    const cells = rows.map(({ count, arrived, perSecond, p50, p99, last }) =>
      [count, arrived, perSecond.toFixed(0), p50, p99, last].map(String),
    )
    const head = ['directories', 'events', 'events/s', 'p50 ms', 'p99 ms', 'latest ms']
    return {
      title: `Webhooks at ${rate} events a second`,
      text: `${tableFrom(head, cells)}\n\nA queue of ${queueLength} events of one directory goes out at ${drained.toFixed(0)} a second.`,
      kept: rows.every(({ arrived, last }) => arrived === rate * seconds && last <= latest),
    }
  } finally {
    await service.stop()
    receiver.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Events at a steady rate, and how late they arrived. */
async function steady({ receiver }, directories) {
  const ages = []
  receiver.watch = event => ages.push(Date.now() - Date.parse(event.created_at))
  const begin = performance.now()
  for (let second = 0; second < seconds; second++) {
    await sleep(begin + second * 1000 - performance.now())
    const op = second % 2 === 0 ? 'add' : 'remove'
    await Promise.all(directories.map(directory => directory.members(op, directory.users)))
  }
  await until(() => ages.length >= rate * seconds, 60_000)
  const took = (performance.now() - begin) / 1000
  ages.sort((a, b) => a - b)
  return {
    arrived: ages.length,
    perSecond: ages.length / took,
    p50: median(ages),
    p99: ages[Math.floor(ages.length * 0.99)],
    last: ages.at(-1),
  }
}

/** Events a second at which one directory's queue is drained. */
async function drain(bench) {
  const directory = await makeDirectory(bench, rate)
  let arrived = 0
  bench.receiver.watch = () => {
    arrived++
  }
  const begin = performance.now()
  for (let made = 0; made < queueLength; made += directory.users.length) {
    await directory.members(made % (2 * directory.users.length) === 0 ? 'add' : 'remove', directory.users)
  }
  await until(() => arrived >= queueLength, 120_000)
  return arrived / ((performance.now() - begin) / 1000)
}

/** A directory with a group and `size` users, whose events so far have been delivered. */
async function makeDirectory({ receiver, told }, size) {
  const { port, key } = told
  let arrived = 0
  receiver.watch = () => {
    arrived++
  }
  const webhook = { webhook_url: receiver.url, webhook_secret: 'bench-secret' }
  const body = { tenant: `t${performance.now()}`, product: 'bench', ...webhook }
  const { data } = await call(port, 'POST', '/api/v1/directory-sync', `Api-Key ${key}`, body)
  const scim = (method, path, content) =>
    call(port, method, `${data.scim.path}${path}`, `Bearer ${data.scim.secret}`, content)
  const users = []
  for (let n = 0; n < size; n++) users.push((await scim('POST', '/Users', { userName: `user-${n}` })).id)
  const { id } = await scim('POST', '/Groups', { displayName: 'Everybody' })
  await until(() => arrived > size, 60_000)
  const members = (op, ids) =>
    scim('PATCH', `/Groups/${id}`, {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op, path: 'members', value: ids.map(value => ({ value })) }],
    })
  return { users, members }
}

async function call(port, method, path, authorization, body) {
  const headers = { authorization, 'content-type': 'application/json' }
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers,
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

async function until(condition, limit) {
  const deadline = performance.now() + limit
  while (!condition() && performance.now() < deadline) await sleep(5)
}

async function startReceiver() {
  const receiver = { watch: () => undefined, url: '', stop: () => undefined }
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', chunk => {
      text += chunk
    })
    request.on('end', () => {
      response.writeHead(204).end()
      receiver.watch(JSON.parse(text))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${server.address().port}/`
  receiver.stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return receiver
}
