/** The connection to Redis, whatever it is made of. The home file of ioredis. */
import { readFileSync } from 'node:fs'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { Log } from '../../types.js'
import { hashSlot } from './hash-slot.js'
import { redisAddress } from './redis-address.js'

export type RedisClient = Redis | Cluster

/**
 * Nothing is queued or sent again while Redis is away: a late burst of charges would be worse than none. The
 * connection recovers by itself, even if Redis was down at the start.
 */
const retryStrategy = (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 6), 1000)
const OPTIONS: RedisOptions = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1000,
  retryStrategy,
  // A master that was demoted answers and refuses to count: its name may lead to the new one by now.
  reconnectOnError: error => error.message.includes('READONLY'),
}
/** How soon a Cluster's new masters are known when the old ones cannot tell. */
const TOPOLOGY_EVERY_MS = 1000
const GREETING_MS = 2000

/** Starts to connect; an address that cannot be reached now is tried again. */
export function connectRedis(url: string, log: Log): RedisClient {
  const client = clientFor(url)
  const onError = (error: unknown) => {
    troubles.set(client, error as NodeJS.ErrnoException)
    log.debug({ err: error }, 'redis connection')
  }
  client.on('error', onError).on('ready', () => troubles.delete(client))
  if (client instanceof Cluster) client.on('node error', onError).on('+node', watchGreeting)
  else watchGreeting(client)
  client.connect().catch(onError)
  return client
}

/** Calls `listener` whenever a connection has closed, or could not be made. */
export function onClosed(client: RedisClient, listener: () => void): void {
  client.on('close', listener)
  if (!(client instanceof Cluster)) return
  for (const node of client.nodes()) node.on('close', listener)
  client.on('+node', node => node.on('close', listener))
}

const troubles = new WeakMap<RedisClient, NodeJS.ErrnoException>()

/** What went wrong last with a connection, as `ECONNREFUSED` or in Redis's own words. */
export function troubleOf(client: RedisClient): string | undefined {
  const error = troubles.get(client)
  return error?.code ?? error?.message
}

function clientFor(url: string): RedisClient {
  const address = redisAddress(url)
  if (address.kind === 'server') return new Redis(address.url, OPTIONS)
  const { username, password } = address
  const access = { ...(username && { username }), ...(password && { password }) }
  const tls = address.tls ? { tls: {} } : {}
  if (address.kind === 'sentinel') {
    const { sentinels, master: name } = address
    const secure = address.tls ? { ...tls, enableTLSForSentinelMode: true } : {}
    return new Redis({ ...OPTIONS, ...access, ...secure, sentinels, name, failoverDetector: true })
  }
  const { lazyConnect, enableOfflineQueue, retryStrategy, ...redisOptions } = OPTIONS
  return new Cluster(address.nodes, {
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: retryStrategy as (attempt: number) => number,
    clusterNodeRetryStrategy: retryStrategy,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshInterval: TOPOLOGY_EVERY_MS,
    // Certificates name hosts, so hosts are not turned into addresses.
    ...(address.tls && { dnsLookup: (host, done) => done(null, host) }),
    redisOptions: { ...redisOptions, ...access, ...tls },
  })
}

/** True where keys live in slots, and a script reaches only those of one. */
export function isCluster(client: RedisClient): boolean {
  return client instanceof Cluster
}

/** The node that keeps `key`; '' where there is only one, or while nobody knows. */
export function nodeOf(client: RedisClient, key: string): string {
  return client instanceof Cluster ? (client.slots[hashSlot(key)]?.[0] ?? '') : ''
}

/** Gives up a connection that swallows bytes, for a new one. */
export function reconnect(client: RedisClient, key: string): void {
  if (client instanceof Redis) {
    giveUp(client)
    return
  }
  const node = nodeOf(client, key)
  for (const redis of client.nodes()) {
    if (`${redis.options.host}:${redis.options.port}` === node) giveUp(redis)
  }
}

/**
 * Nothing is asked of a connection before Redis has greeted it, so nobody else would notice that it has fallen silent by
 * then. A Redis that is still loading its data sees a new connection now and then.
 */
function watchGreeting(redis: Redis): void {
  redis.on('connect', () => {
    const { stream } = redis
    const look = () => {
      if (redis.status === 'connect' && redis.stream === stream) giveUp(redis)
    }
    setTimeout(look, GREETING_MS).unref()
  })
}

/**
 * Destroyed without QUIT: a dead connection would not answer it, `disconnect` would wait two seconds, and each
 * call would leave a listener. Once it has closed, ioredis opens a new one.
 */
function giveUp({ stream }: { readonly stream: Redis['stream'] | undefined }): void {
  stream?.destroy()
}

/** Sends what `calls` asks for in one write per connection: each write is a system call, which costs more than its bytes. */
export function inOneWrite(client: RedisClient, calls: () => void): void {
  const connections = client instanceof Cluster ? client.nodes('master') : [client]
  // A connection that was never established has no stream yet.
  const streams = connections.flatMap(({ stream }) => (stream as typeof stream | undefined) ?? [])
  for (const stream of streams) stream.cork()
  try {
    calls()
  } finally {
    for (const stream of streams) stream.uncork()
  }
}

/** What a library of `lua/` stands on. */
const NEEDED: Readonly<Record<string, readonly string[]>> = { window: ['algorithms'] }

/** A script of `lua/`, put behind the libraries it needs. */
export function script(...names: string[]): string {
  return names
    .flatMap(name => [...(NEEDED[name] ?? []), name])
    .map(name => readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8'))
    .join('\n')
}
