/** Gateways of two workers, for the tests of workers that take another's place. */

import type { Test } from 'tap'
import { type GatewayProcess, gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { oneBucket } from '../../helpers/policies.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

/** Undefined without Redis. `listen` and the others are keys of gateway.yaml; every route requires a credential. */
export async function twoWorkers(
  t: Test,
  { listen = {}, ...settings }: { listen?: object; identify: object[]; apiKeys?: string; upstreams?: object },
  env: Readonly<Record<string, string>> = {},
) {
  const redis = await redisUrl(t)
  if (redis === undefined) return undefined
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gateway = {
    listen: { workers: 2, ...listen },
    redis,
    upstreams: { app: { url: upstream } },
    ...settings,
    routes: [{ path: '/**', upstream: 'app', auth: 'required' }],
  }
  const folder = writeConfig(t, gateway, { 'limits.yaml': oneBucket(10_000) })
  return { folder, gateway: await gatewayProcess(t, folder, env) }
}

/** Process ids of the workers, the oldest first. */
export const workersOf = async ({ adminUrl }: GatewayProcess) =>
  (await send(`${adminUrl}/state`)).json<{ workers: { pid: number }[] }>().workers.map(({ pid }) => pid)

/** Kills the older worker, and waits until another has taken its place. */
export async function replaceWorker(gateway: GatewayProcess): Promise<void> {
  const [killed = 0] = await workersOf(gateway)
  process.kill(killed, 'SIGKILL')
  await waitUntil(
    'a new worker',
    async () => {
      const now = await workersOf(gateway)
      return now.length === 2 && !now.includes(killed)
    },
    20_000,
  )
}
