// Keeps what this release stores, so that a test can check that later releases open it: after `npm run build`,
// `node scripts/make-release-fixture.mjs NUMBER` writes test/fixtures/releases/NUMBER, a data folder and a Redis dump.
// Needs redis-server.
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort } from './bench/processes.mjs'
import { Failure, inProject, script } from './lib/run.mjs'

const apiKey = 'release-fixture-key-0123'

await script(async () => {
  const [number] = process.argv.slice(2)
  if (!/^\d+$/.test(number ?? '')) throw new Failure('say the number of the release, such as 1')
  const folder = inProject('test', 'fixtures', 'releases', number)
  const data = join(folder, 'kept')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const port = await freePort()
  const redisServer = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', ''])
  const redis = new Redis({ port, retryStrategy: () => 100 })
  redis.on('error', () => undefined)
  const env = { PATH: process.env.PATH, DATA_DIR: data, API_KEYS: apiKey, IDENTITY_ADMIN_KEYS: apiKey }
  const args = [
    inProject('dist/gateway/cli.js'),
    'serve',
    '--config',
    inProject('test/fixtures/releases/config'),
  ]
  const gateway = spawn(process.execPath, args, { env: { ...env, REDIS_URL: `redis://127.0.0.1:${port}` } })
  try {
    const [, url, adminUrl] = await ready(gateway)
    await use(url, adminUrl)
    const dump = {}
    for (const key of await redis.keys('*')) {
      dump[key] = { ttl: await redis.pttl(key), payload: (await redis.dumpBuffer(key)).toString('base64') }
    }
    writeFileSync(join(folder, 'redis.json'), `${JSON.stringify(dump, null, 2)}\n`)
  } finally {
    gateway.kill('SIGTERM')
    await new Promise(resolve => gateway.once('exit', resolve))
    redis.disconnect()
    redisServer.kill()
  }
})

/** The match of its ready message. */
async function ready(gateway) {
  let out = ''
  for (const stream of [gateway.stdout, gateway.stderr])
    stream.on('data', text => {
      out += text
    })
  for (let tries = 0; tries < 200; tries++) {
    const found = /Sluice is ready on (\S+), admin on ([^\s"]+)/.exec(out)
    if (found) return found
    await sleep(100)
  }
  throw new Failure(`the gateway does not start: ${out}`)
}

/** Stores something of every kind. */
async function use(url, adminUrl) {
  const call = async (method, path, authorization, body) => {
    const headers = { authorization, 'content-type': 'application/json', 'x-sluice-project': 'acme' }
    const request = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const answer = await fetch(path.startsWith('http') ? path : url + path, request)
    const text = await answer.text()
    if (!answer.ok && authorization !== 'wrong')
      throw new Failure(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  const manage = (method, path, body) =>
    call(method, `/api/v1/directory-sync${path}`, `Api-Key ${apiKey}`, body)
  const hook = { webhook_url: 'https://example.com/hook', webhook_secret: 'hush-hush' }
  const { data } = await manage('POST', '', { tenant: 'acme', product: 'app', ...hook })
  const scim = (path, body) =>
    call('POST', `/api/scim/v2.0/${data.id}${path}`, `Bearer ${data.scim.secret}`, body)
  const user = await scim('/Users', {
    userName: 'ann@acme.example',
    name: { givenName: 'Ann' },
    active: true,
  })
  await scim('/Groups', { displayName: 'Staff', members: [{ value: user.id }] })
  const traits = { email: 'ann@acme.example', name: { first: 'Ann' } }
  await call('POST', '/admin/identities', `Bearer ${apiKey}`, { traits })
  await call('GET', '/admin/identities', 'wrong')
  for (let i = 0; i < 7; i++) await fetch(`${url}/sessions/whoami`)
  const deny = { networks: ['203.0.113.0/24'], action: 'deny', why: 'It scrapes.', by: 'anna' }
  await call('PUT', `${adminUrl}/access/scraper`, '', deny)
}
