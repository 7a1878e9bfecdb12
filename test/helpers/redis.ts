import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { type ChildServer, findCommand, startServer } from './child-server.js'
import { reportMissing } from './missing.js'

const DATABASES = 1000

/**
 * The URL of an empty database on a real Redis, or undefined after reporting the test as skipped (a failure
 * in CI). Takes `REDIS_URL` when set, else starts `redis-server`. One server serves a whole test file.
 */
export async function redisUrl(t: Test): Promise<string | undefined> {
  const given = process.env.REDIS_URL
  if (given) return claimEmptyDatabase(given, t)
  if (!redisCommand(t)) return undefined
  server ??= startRedis()
  databasesTaken += 1
  return `${(await server).url}/${databasesTaken % DATABASES}`
}

let server: Promise<RedisServer> | undefined
let databasesTaken = 0

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** From now on it accepts connections and never answers: a black hole. */
  pause(): void
  resume(): void
  /** From now on connections are refused. */
  kill(): Promise<void>
  /** Comes back on the same port, empty. */
  restart(): Promise<void>
  /** Ends it and removes its folder: for `t.teardown`. */
  stop(): Promise<void>
}

/** A `redis-server` of the test's own, to be paused, killed and restarted. Call `redisCommand(t)` first. */
export async function startRedis(...options: string[]): Promise<RedisServer> {
  const command = findCommand(['redis-server'])
  if (!command) throw new Error('redis-server is not on PATH')
  const child = await startServer({
    command,
    args: (port, folder) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ...['--save', '', '--appendonly', 'no', '--databases', String(DATABASES), ...options],
    ],
    answers: async port => (await ask(`redis://127.0.0.1:${port}`, redis => redis.ping())) === 'PONG',
  })
  return asRedis(child)
}

/** The path of `redis-server`, or undefined after reporting the test as skipped (a failure in CI). */
export function redisCommand(t: Test): string | undefined {
  const command = findCommand(['redis-server'])
  if (!command) reportMissing(t, 'redis-server', 'install it with `npm run services` or your package manager')
  return command
}

function asRedis(child: ChildServer): RedisServer {
  return {
    url: `redis://127.0.0.1:${child.port}`,
    port: child.port,
    pause: () => child.signal('SIGSTOP'),
    resume: () => child.signal('SIGCONT'),
    kill: () => child.kill(),
    stop: () => child.stop(),
    async restart() {
      await child.kill()
      await child.start()
    },
  }
}

/** On a borrowed server only an empty database is used, marked as ours, and emptied at the end. */
async function claimEmptyDatabase(base: string, t: Test): Promise<string> {
  for (let number = 1; number < 16; number += 1) {
    const url = new URL(base)
    url.pathname = `/${number}`
    const claimed = await ask(
      url.href,
      async redis => (await redis.dbsize()) === 0 && (await redis.incr('sluice-test-claim')) === 1,
    )
    if (!claimed) continue
    t.teardown(() => ask(url.href, redis => redis.flushdb()))
    return url.href
  }
  throw new Error('REDIS_URL has no empty database among 1 to 15; empty one, or unset REDIS_URL')
}

async function ask<T>(url: string, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    return await question(redis)
  } finally {
    if (redis.status !== 'end') redis.disconnect()
  }
}
