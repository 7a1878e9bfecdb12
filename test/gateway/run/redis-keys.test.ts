/** The keys that a gateway writes to Redis. */
import { Redis } from 'ioredis'
import t from 'tap'
import { KEY_SPACE } from '../../../gateway/decide/redis/key-space.js'
import { gatewayProcess } from '../../helpers/gateway-process.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { inProject } from '../../helpers/root.js'

const apiKey = 'a-key-of-the-services-0123'
const config = inProject('test', 'fixtures', 'redis-keys')

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
