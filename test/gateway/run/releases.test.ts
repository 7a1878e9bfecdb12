/** Data stored by an earlier release is opened: test/fixtures/releases, made by scripts/make-release-fixture.mjs. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { KEY_SPACE } from '../../../gateway/decide/redis/key-space.js'
import { gatewayProcess } from '../../helpers/gateway-process.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { inProject } from '../../helpers/root.js'

const releases = inProject('test', 'fixtures', 'releases')
const apiKey = 'release-fixture-key-0123'
const config = join(releases, 'config')

const ask = async (url: string, authorization: string, from = '192.0.2.1') => {
  const headers = {
    authorization,
    host: 'acme.localhost',
    'x-forwarded-for': from,
    'x-sluice-project': 'acme',
  }
  const answer = await fetch(url, { headers })
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  return { status: answer.status, body: (await answer.json()) as any }
}

t.jobs = 2
const kept = readdirSync(releases).filter(name => name !== 'config')
t.ok(kept.length > 0)
for (const release of kept) {
  t.test(`release ${release}: its data folder and Redis keys are read`, async t => {
    if (!redisCommand(t)) return
    const server = await startRedis()
    t.teardown(() => server.stop())
    const redis = new Redis(server.url)
    t.teardown(() => redis.disconnect())
    const dump = JSON.parse(readFileSync(join(releases, release, 'redis.json'), 'utf8')) as Record<
      string,
      { ttl: number; payload: string }
    >
    for (const [key, { ttl, payload }] of Object.entries(dump)) {
      await redis.restore(key, Math.max(0, ttl), Buffer.from(payload, 'base64'))
    }
    const data = mkdtempSync(join(tmpdir(), 'sluice-release-'))
    t.teardown(() => rmSync(data, { recursive: true }))
    cpSync(join(releases, release, 'kept'), data, { recursive: true })

    const env = { API_KEYS: apiKey, IDENTITY_ADMIN_KEYS: apiKey, DATA_DIR: data, REDIS_URL: server.url }
    const { url, out } = await gatewayProcess(t, config, env)
    const people = await ask(
      `${url}/api/v1/directory-sync/users?tenant=acme&product=app`,
      `Api-Key ${apiKey}`,
    )
    t.match(people, { status: 200, body: { data: [{ email: 'ann@acme.example' }] } })
    const groups = await ask(
      `${url}/api/v1/directory-sync/groups?tenant=acme&product=app`,
      `Api-Key ${apiKey}`,
    )
    t.match(groups.body.data, [{ name: 'Staff' }])
    const identities = await ask(`${url}/admin/identities`, `Bearer ${apiKey}`)
    t.match(identities, { status: 200, body: { identities: [{ traits: { email: 'ann@acme.example' } }] } })
    t.equal(
      (await ask(`${url}/sessions/whoami`, '', '203.0.113.9')).status,
      403,
      'a denied network stays denied',
    )
    t.not((await ask(`${url}/sessions/whoami`, '')).status, 503, 'the counters in Redis are usable')
    t.notMatch(out(), /"level":"error"/)
  })
}

t.test('every key a gateway writes to Redis begins with its key space', async t => {
  if (!redisCommand(t)) return
  const server = await startRedis()
  t.teardown(() => server.stop())
  const [redis, listener] = [new Redis(server.url), new Redis(server.url)]
  t.teardown(() => [redis, listener].map(each => each.disconnect()))
  await redis.config('SET', 'notify-keyspace-events', 'EA')
  const written = new Set<string>()
  listener.on('pmessage', (_pattern: string, _channel: string, key: string) => written.add(key))
  await listener.psubscribe('__keyevent@*__:*')

  const data = t.testdir()
  const env = { API_KEYS: apiKey, IDENTITY_ADMIN_KEYS: apiKey, DATA_DIR: data, REDIS_URL: server.url }
  const { url, adminUrl } = await gatewayProcess(t, config, env)
  const send = (method: string, path: string, authorization: string) =>
    fetch(url + path, { method, headers: { authorization }, ...(method === 'GET' ? {} : { body: '{}' }) })
  const calls = Array.from({ length: 40 }, () => [
    send('GET', '/sessions/whoami', ''),
    send('POST', '/self-service/registration', ''),
    send('PATCH', '/admin/identities', `Bearer ${apiKey}`),
    send('GET', '/admin/identities', 'Bearer wrong'),
  ])
  await Promise.all(calls.flat())
  const body = JSON.stringify({ networks: ['203.0.113.0/24'], action: 'deny', why: 'It scrapes.' })
  const headers = { 'content-type': 'application/json' }
  t.equal((await fetch(`${adminUrl}/access/one`, { method: 'PUT', headers, body })).status, 201)
  for (const key of await redis.keys('*')) written.add(key)
  const kinds = ['project-limits', 'in-flight', 'volumetric', 'wrong-keys', 'access']
  for (const kind of kinds)
    t.ok(
      [...written].some(key => key.includes(kind)),
      `${kind} has written a key`,
    )
  t.same(
    [...written].filter(key => !key.startsWith(KEY_SPACE)),
    [],
  )
})
