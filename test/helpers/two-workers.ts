/** A gateway of two workers that count on a Redis of their own. */
import type { Test } from 'tap'
import {
  type GatewayProcess,
  gatewayProcess,
  oneUpstream,
  writeConfig,
  type Yaml,
} from './gateway-process.js'
import { startApp } from './http.js'
import { redisCommand, startRedis } from './redis.js'

/** Undefined, and the test skipped, without redis-server. `settings` are further keys of gateway.yaml. */
export async function twoWorkers(
  t: Test,
  policies: Readonly<Record<string, Yaml>>,
  settings: object = {},
  env: Readonly<Record<string, string>> = {},
): Promise<GatewayProcess | undefined> {
  if (!redisCommand(t)) return undefined
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const gateway = {
    listen: { workers: 2 },
    redis: redis.url,
    store: { deadline: '5s' },
    ...oneUpstream(upstream),
    ...settings,
  }
  return gatewayProcess(t, writeConfig(t, gateway, policies), env)
}
