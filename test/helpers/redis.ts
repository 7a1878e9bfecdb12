import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { type ChildServer, findCommand, freePort, startServer } from './child-server.js'
import { reportMissing } from './missing.js'
import { waitUntil } from './wait.js'

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
  // Chosen before the await: concurrent tests must not get the same database.
  const database = databasesTaken % DATABASES
  return `${(await server).url}/${database}`
}

let server: Promise<RedisServer> | undefined
let databasesTaken = 0

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** From now on it accepts connections and never responds. */
  pause(): void
  resume(): void
  /** From now on connections are refused. */
  kill(): Promise<void>
  /** Starts it again on the same port, empty. */
  restart(): Promise<void>
  /** Kills it and removes its folder: for `t.teardown`. */
  stop(): Promise<void>
}

/** A `redis-server` for one test, to pause, kill and restart. Call `redisCommand(t)` first. */
export async function startRedis(...options: string[]): Promise<RedisServer> {
  const command = redisServer()
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

/** `npm run stores` runs the tests on other servers. */
function redisServer(): string | undefined {
  return process.env.REDIS_SERVER || findCommand(['redis-server'])
}

/** The path of `redis-server`, or undefined after reporting the test as skipped (a failure in CI). */
export function redisCommand(t: Test): string | undefined {
  const command = redisServer()
  if (!command) reportMissing(t, 'redis-server', 'install it with `npm run services` or your package manager')
  return command
}

/** How many scripts all clients of a Redis have run. */
export async function scriptCalls(redis: Redis): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
}

export interface RedisCluster {
  /** The address of one node; clients discover the others through it. */
  readonly url: string
  readonly masters: readonly RedisServer[]
  /** The replica of the first master. */
  readonly replica: RedisServer
  stop(): Promise<void>
}

/** The address of a Cluster for one test, or undefined as `redisUrl` is. */
export async function clusterUrl(t: Test): Promise<string | undefined> {
  if (redisCommand(t) === undefined) return undefined
  const cluster = await startCluster()
  t.teardown(() => cluster.stop())
  return cluster.url
}

const SLOTS = 16_384

/** A Cluster of one node: from outside, what a store is that hides its shards behind one address. */
export async function startOneNodeCluster(...options: string[]): Promise<RedisServer> {
  const busPort = String(await freePort())
  const settings = ['--cluster-enabled', 'yes', '--cluster-port', busPort, '--databases', '1']
  const server = await startRedis(...settings, ...options)
  await ask(server.url, redis => redis.call('CLUSTER', 'ADDSLOTSRANGE', 0, SLOTS - 1))
  await waitUntil('the Cluster to count', () =>
    ask(server.url, async redis => /cluster_state:ok/.test(String(await redis.cluster('INFO')))),
  )
  return server
}

/**
 * Three masters, and a replica of the first. Slots that no node serves do not stop the others.
 *
 * @param options for each node
 */
export async function startCluster(...options: string[]): Promise<RedisCluster> {
  const nodes: RedisServer[] = []
  const busPorts: number[] = []
  for (let i = 0; i < 4; i += 1) {
    const busPort = await freePort()
    busPorts.push(busPort)
    nodes.push(
      await startRedis(
        ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--databases', '1'],
        ...['--cluster-node-timeout', '2000', '--cluster-require-full-coverage', 'no'],
        ...options,
      ),
    )
  }
  const [first, , , replica] = nodes as [RedisServer, RedisServer, RedisServer, RedisServer]
  const masters = nodes.slice(0, 3)
  for (const [i, { url }] of masters.entries()) {
    const from = Math.ceil((i * SLOTS) / masters.length)
    const to = Math.ceil(((i + 1) * SLOTS) / masters.length) - 1
    await ask(url, redis => redis.call('CLUSTER', 'ADDSLOTSRANGE', from, to))
  }
  await introduce(nodes, busPorts)
  const firstId = await ask(first.url, redis => redis.call('CLUSTER', 'MYID'))
  await ask(replica.url, redis => redis.call('CLUSTER', 'REPLICATE', firstId as string))
  for (const { url } of nodes) {
    await waitUntil('the nodes to know the replica', () =>
      ask(url, async redis => {
        const [state, known] = [await redis.cluster('INFO'), await redis.cluster('NODES')]
        return /cluster_state:ok/.test(String(state)) && /slave/.test(String(known))
      }),
    )
  }
  const isLinked = (text: string) => /master_link_status:up/.test(text)
  await waitUntil('the replica to be in sync', () =>
    ask(replica.url, async redis => isLinked(await redis.info('replication'))),
  )
  return {
    url: `redis+cluster://127.0.0.1:${first.port}`,
    masters,
    replica,
    stop: async () => void (await Promise.all(nodes.map(node => node.stop()))),
  }
}

/** Resolves when all nodes know each other. On a busy machine a handshake may time out, and nobody repeats it. */
async function introduce(nodes: readonly RedisServer[], busPorts: readonly number[]): Promise<void> {
  const [first, ...others] = nodes as [RedisServer, ...RedisServer[]]
  const isKnown = async () => {
    const known = nodes.map(({ url }) => ask(url, redis => redis.cluster('NODES') as Promise<string>))
    const isComplete = (text: string) => text.trim().split('\n').length === nodes.length
    return (await Promise.all(known)).every(text => isComplete(text) && !text.includes('handshake'))
  }
  for (let tries = 1; ; tries += 1) {
    for (const [i, { port }] of others.entries()) {
      const busPort = busPorts[i + 1] as number
      await ask(first.url, redis => redis.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort))
    }
    const met = waitUntil('the nodes to know each other', isKnown, 5000)
    const isDone = await met.then(
      () => true,
      error => {
        if (tries === 5) throw error
        return false
      },
    )
    if (isDone) return
  }
}

/** A Sentinel that monitors the master on that port of 127.0.0.1 under the name `main`. */
export async function startSentinel(master: Pick<RedisServer, 'port'>): Promise<RedisServer> {
  const child = await startServer({
    command: redisServer() as string,
    args(port, folder) {
      const file = join(folder, 'sentinel.conf')
      writeFileSync(
        file,
        [
          `port ${port}`,
          'bind 127.0.0.1',
          `sentinel monitor main 127.0.0.1 ${master.port} 1`,
          'sentinel down-after-milliseconds main 1000',
          'sentinel failover-timeout main 3000',
        ].join('\n'),
      )
      return [file, '--sentinel']
    },
    answers: async port => (await ask(`redis://127.0.0.1:${port}`, redis => redis.ping())) === 'PONG',
  })
  return asRedis(child)
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

/** On a borrowed server only an empty database is used; it is marked as ours, and emptied at the end. */
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
