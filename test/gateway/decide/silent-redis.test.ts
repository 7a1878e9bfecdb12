/** A Redis that accepts bytes but no longer responds, while slots are held there. */
import type { Redis } from 'ioredis'
import t from 'tap'
import { connectRedis, reconnect } from '../../../gateway/decide/redis/connection.js'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { Ask } from '../../../gateway/decide/store/store.js'
import { faultProxy } from '../../helpers/faults.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const HELD = 3

t.test('a connection that falls silent is replaced, even when its replacement is silent too', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  const proxy = await faultProxy(redis.port)
  t.teardown(async () => {
    await proxy.stop()
    await redis.stop()
  })
  let isAway = false
  const hooks = {
    failed() {},
    late() {},
    awayChanged(away: boolean) {
      isAway = away
    },
  }
  const settings = {
    redis: `redis://127.0.0.1:${proxy.port}`,
    deadline: 250,
    instances: 1,
    onError: 'local',
  } as const
  const { store } = await openStore(settings, quiet, hooks)
  t.teardown(() => store.close())
  const slot: Ask = {
    key: 'sluice:{silent}:e:slots',
    demand: { kind: 'slots', max: 100, ttlMs: 3000 },
    group: 0,
    onStoreError: 'local',
  }
  await waitUntil('Redis to count', async () => (await store.take([slot], 'first'))[0]?.store === 'redis')
  for (let i = 0; i < HELD; i += 1) await store.take([slot], `holder ${i}`)

  await proxy.set({ kind: 'halfopen' })
  const silentAt = performance.now()
  await waitUntil('the silence to be noticed', async () => {
    await store.take([slot], `late ${performance.now()}`)
    return isAway
  })
  await waitUntil('a new connection to count', () => !isAway)
  const backMs = performance.now() - silentAt
  t.ok(
    backMs < 3500,
    `after ${Math.round(backMs)} ms: the patience of a call, and no farewell to a connection that is dead`,
  )

  // The next connection is opened while nothing gets through, so it is dead from the start.
  await proxy.set({ kind: 'reset' })
  await proxy.set({ kind: 'blackhole' })
  const { connections } = proxy
  await waitUntil('the reset to be noticed', async () => {
    await store.take([slot], `lost ${performance.now()}`)
    return isAway
  })
  await waitUntil('a connection that hears nothing', () => proxy.connections > connections)
  await proxy.set({ kind: 'halfopen' })
  await waitUntil('another one to count', () => !isAway)
})

t.test('a connection that is replaced again and again leaks no listeners, and recovers', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(String(warning))
  process.on('warning', onWarning)
  const client = connectRedis(redis.url, quiet) as Redis
  t.teardown(async () => {
    process.off('warning', onWarning)
    client.disconnect()
    await redis.stop()
  })
  await waitUntil('the connection', () => client.status === 'ready')
  redis.pause()
  for (let i = 0; i < 20; i += 1) {
    reconnect(client, 'key')
    await sleep(20)
  }
  redis.resume()
  await waitUntil('Redis to be back', () => client.ping())
  t.strictSame(warnings, [])
})
