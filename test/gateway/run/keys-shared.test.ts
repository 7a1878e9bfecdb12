/** API keys in a gateway of several workers, and in several gateways on one Redis. */
import t from 'tap'
import type { KeyList } from '../../../gateway/admin/key-list.js'
import { sluice } from '../../helpers/command.js'
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
