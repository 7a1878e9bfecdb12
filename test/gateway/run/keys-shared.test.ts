/** API keys in a gateway of several workers, and in several gateways on one Redis. */
import { Redis } from 'ioredis'
import t from 'tap'
import type { KeyList } from '../../../gateway/admin/key-list.js'
import { sluice } from '../../helpers/command.js'
import { testGateway } from '../../helpers/gateway.js'
import { type GatewayProcess, gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { oneBucket } from '../../helpers/policies.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

t.test('all workers know a key; its last use is known to every gateway, and after a restart', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const folder = writeConfig(
    t,
    {
      listen: { workers: 2 },
      redis,
      apiKeys: 'api-keys.json',
      identify: [{ plugin: 'api-key' }],
      upstreams: { app: { url: upstream } },
      routes: [{ path: '/**', upstream: 'app', auth: 'required' }],
    },
    { 'limits.yaml': oneBucket(10_000) },
  )
  const first = await gatewayProcess(t, folder)
  const keys = async (...args: string[]) => (await sluice(['keys', ...args, '--config', folder])).out.trim()
  const key = await keys('add', '--project', 'acme', '--name', 'ci')
  const statuses = async (gateway: GatewayProcess) => {
    const headers = { 'x-api-key': key, connection: 'close' }
    const all = await Promise.all(Array.from({ length: 12 }, () => send(gateway.url, { headers })))
    return [...new Set(all.map(({ status }) => status))]
  }
  const isEvery = (status: number) => async () => {
    const seen = await statuses(first)
    return seen.length === 1 && seen[0] === status
  }
  await waitUntil('the key in all workers', isEvery(200))
  const used = async ({ adminUrl }: GatewayProcess) =>
    (await send(`${adminUrl}/keys`)).json<KeyList>().keys[0]?.last_used
  const usedAt = await used(first)
  t.ok(Date.now() - Date.parse(usedAt ?? '') < 10_000)

  const second = await gatewayProcess(t, folder)
  t.equal(await used(second), usedAt, 'another gateway, which has not seen the key')
  const explained = await sluice([
    'explain',
    'GET',
    '/',
    '--live',
    first.adminUrl,
    '--header',
    `x-api-key: ${key}`,
  ])
  t.match(explained.out, /found by api-key/)

  await keys('revoke', 'ci')
  // Many wrong ones at once are throttled.
  await waitUntil('the end in all workers', async () => !(await statuses(first)).includes(200))
  const state = async () => (await send(`${second.adminUrl}/keys`)).json<KeyList>().keys[0]?.state
  await waitUntil('the end in the list of the other gateway', async () => (await state()) === 'revoked')
})

t.test('a last use never goes backwards, however late a gateway tells of an earlier one', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gateway = await testGateway(t, {
    upstream,
    routeSettings: 'auth: required',
    settings: `redis: ${url}\napiKeys: api-keys.json\nidentify: [{ plugin: api-key }]\n`,
  })
  const add = async (name: string) =>
    JSON.parse(
      (
        await sluice([
          'keys',
          'add',
          '--json',
          '--config',
          gateway.folder,
          '--project',
          'acme',
          '--name',
          name,
        ])
      ).out,
    ) as { readonly id: string; readonly key: string }
  const [ahead, behind] = [await add('ahead'), await add('behind')]
  const later = Date.now() + 3_600_000
  await redis.hset('sluice:1:keys-used', { [ahead.id]: later, [behind.id]: 1000 })
  for (const { key } of [ahead, behind]) {
    await waitUntil('the key', async () => {
      return (await send(gateway.url, { headers: { 'x-api-key': key } })).status === 200
    })
  }
  const { keys } = (await send(`${gateway.adminUrl}/keys`)).json<KeyList>()
  const listed = (name: string) => Date.parse(keys.find(one => one.name === name)?.last_used ?? '')
  t.equal(listed('ahead'), later, 'of another gateway')
  t.ok(Date.now() - listed('behind') < 10_000, 'of this one')
  t.same(await redis.hmget('sluice:1:keys-used', ahead.id, behind.id), [later, listed('behind')].map(String))
})
