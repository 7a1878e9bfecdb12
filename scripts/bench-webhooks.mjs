/**
 * Do webhooks keep up? Sends a directory service (SQLite, or MONGODB_URL) changes that make RATE events a second (default
 * 500) for SECONDS (default 20), spread over DIRECTORIES (default 1 and 10), to a receiver on loopback. Prints how late the
 * events came, then how fast a queue of 10000 is worked off. Exit code 1 when the events did not keep up.
 *
 *   node scripts/build.mjs && node scripts/bench-webhooks.mjs
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { inProject } from './lib/run.mjs'

const rate = Number(process.env.RATE ?? 500)
const seconds = Number(process.env.SECONDS ?? 20)
const counts = (process.env.DIRECTORIES ?? '1,10').split(',').map(Number)
const queueLength = 10_000
/** The last event of a second must not come later than this, else the queue grows. */
const latest = 2000
const apiKey = 'bench-key-0123456789'

const receiver = await startReceiver()
const service = await startService()
let kept = true
try {
  for (const count of counts) {
    const directories = []
    while (directories.length < count) directories.push(await makeDirectory(rate / count))
    kept = (await steady(directories)) && kept
  }
  await drain()
} finally {
  service.stop()
  receiver.stop()
}
process.exitCode = kept ? 0 : 1

/** RATE events a second for SECONDS; true when they came in time. */
async function steady(directories) {
  const ages = []
  receiver.watch = event => ages.push(Date.now() - Date.parse(event.created_at))
  const begin = performance.now()
  for (let second = 0; second < seconds; second++) {
    await sleep(begin + second * 1000 - performance.now())
    const op = second % 2 === 0 ? 'add' : 'remove'
    await Promise.all(directories.map(directory => directory.members(op, directory.users)))
  }
  const asked = rate * seconds
  await until(() => ages.length >= asked, 60_000)
  const took = (performance.now() - begin) / 1000
  ages.sort((a, b) => a - b)
  const at = share => ages[Math.min(ages.length - 1, Math.floor(ages.length * share))]
  console.log(
    `${directories.length} director${directories.length === 1 ? 'y' : 'ies'}: ${ages.length} events in ${took.toFixed(1)} s,` +
      ` ${(asked / took).toFixed(0)}/s; delivered after p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(1)} ms`,
  )
  return ages.length === asked && at(1) <= latest
}

/** How fast one directory's queue is worked off. */
async function drain() {
  const directory = await makeDirectory(500)
  let arrived = 0
  receiver.watch = () => {
    arrived++
  }
  const begin = performance.now()
  for (let made = 0; made < queueLength; made += directory.users.length) {
    await directory.members(made % (2 * directory.users.length) === 0 ? 'add' : 'remove', directory.users)
  }
  await until(() => arrived >= queueLength, 120_000)
  const took = (performance.now() - begin) / 1000
  console.log(`a queue of ${arrived} events of one directory: ${(arrived / took).toFixed(0)} a second`)
}

/** A directory with a group and so many users, its events so far delivered. */
async function makeDirectory(size) {
  let arrived = 0
  receiver.watch = () => {
    arrived++
  }
  const webhook = { webhook_url: receiver.url, webhook_secret: 'bench-secret' }
  const body = { tenant: `t${performance.now()}`, product: 'bench', ...webhook }
  const { data } = await call('POST', '/api/v1/directory-sync', `Api-Key ${apiKey}`, body)
  const scim = (method, path, content) =>
    call(method, `${data.scim.path}${path}`, `Bearer ${data.scim.secret}`, content)
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

async function call(method, path, authorization, body) {
  const headers = { authorization, 'content-type': 'application/json' }
  const answer = await fetch(`${service.url}${path}`, { method, headers, body: JSON.stringify(body) })
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

async function startService() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const script = `
    const { start } = await import(process.env.SERVICE_MODULE)
    const quiet = () => undefined
    const log = { debug: quiet, info: quiet, warn: console.error, error: console.error }
    console.log((await start({ env: process.env, log })).url)
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: {
      ...process.env,
      SERVICE_MODULE: inProject('dist', 'services', 'directory', 'index.js'),
      DATA_DIR: folder,
      API_KEYS: apiKey,
      WEBHOOK_ALLOW_PRIVATE: 'true',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [url] = await once(createInterface({ input: child.stdout }), 'line')
  const stop = () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  return { url, stop }
}
