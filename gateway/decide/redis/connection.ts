/** The connection to Redis, whether one server, a Cluster or Sentinels. The home file of ioredis. */
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { Log } from '../../types.js'
import { redisAddress, shownAddress } from './address.js'
import { hashSlot } from './hash-slot.js'
import { defineScripts } from './scripts.js'

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
  reconnectOnError: isDemoted,
}
/** How often a Cluster's nodes are asked for its topology, in case an old master cannot tell where its keys went. */
const TOPOLOGY_EVERY_MS = 1000
const GREETING_MS = 2000

/** Starts to connect; an address that cannot be reached now is tried again. */
export function connectRedis(url: string, log: Log): RedisClient {
  const client = clientFor(url)
  defineScripts(client)
  if (client instanceof Redis) watchSlots(client, shownAddress(url), log)
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

/** Calls `listener` whenever a connection was closed, or could not be opened. */
export function onClosed(client: RedisClient, listener: () => void): void {
  client.on('close', listener)
  if (!(client instanceof Cluster)) return
  for (const node of client.nodes()) node.on('close', listener)
  client.on('+node', node => node.on('close', listener))
}

const troubles = new WeakMap<RedisClient, NodeJS.ErrnoException>()

/** The last error of a connection, such as `ECONNREFUSED`, or in Redis's own words. */
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
    // Certificates name hosts, so host names are not resolved to addresses.
    ...(address.tls && { dnsLookup: (host, done) => done(null, host) }),
    redisOptions: { ...redisOptions, ...access, ...tls },
  })
}

/** True if a call failed before anything of it was sent: there was no connection. The texts are those of ioredis. */
export function isUnsent({ message }: Error): boolean {
  return /^(?:Stream isn't writeable|Cluster isn't ready) and enableOfflineQueue/.test(message)
}

/** A demoted master still answers, but refuses to count: its name may lead to the new master by now. */
function isDemoted({ message }: Error): boolean {
  return message.includes('READONLY')
}

/** Servers found to keep keys in slots although their address is that of one server. */
const slotted = new WeakSet<RedisClient>()

/** True where keys live in slots and a script can access only one of them, as in a Cluster. */
export function hasSlots(client: RedisClient): boolean {
  return client instanceof Cluster || slotted.has(client)
}

/** The warnings each log already has: the connections of a process find out the same about their address. */
const warned = new WeakMap<Log, Set<string>>()

function warnOnce(log: Log, level: 'info' | 'error', redis: string, text: string): void {
  const texts = warned.get(log) ?? new Set()
  warned.set(log, texts)
  if (!texts.has(text)) log[level]({ redis }, text)
  texts.add(text)
}

/**
 * Behind one address there may be a Cluster: a managed store that hides its shards, a proxy, or a single node. Some say
 * so when they are asked, others only by refusing a script.
 */
function watchSlots(client: Redis, redis: string, log: Log): void {
  const note = () => {
    slotted.add(client)
    const text = `Redis at ${redis} keeps keys in slots, like a Cluster: each slot is asked by itself`
    warnOnce(log, 'info', redis, text)
  }
  client.on('ready', () => {
    const asked = client.info('cluster').then(text => /cluster_enabled:1/.test(text) && note())
    asked.catch(error => log.debug({ err: error }, 'INFO is not allowed'))
  })
  // ioredis calls this with every error that Redis answers.
  client.options.reconnectOnError = error => {
    if (error.message.includes('CROSSSLOT')) note()
    if (error.message.startsWith('MOVED ')) warnOnce(log, 'error', redis, movedText(redis))
    return isDemoted(error)
  }
}

/** What to do about a node that is not the whole Cluster. */
export function movedText(redis: string): string {
  const cluster = redis.replace('://', '+cluster://').replace(/\/\d*$/, '')
  return `Redis at ${redis} is one node of a Cluster: keys of its other nodes cannot be counted there. Set "redis" to ${cluster}`
}

/** The node that keeps `key`; '' if there is only one, or while the topology is unknown. */
export function nodeOf(client: RedisClient, key: string): string {
  return client instanceof Cluster ? (client.slots[hashSlot(key)]?.[0] ?? '') : ''
}

/** Replaces a connection that takes bytes but never answers. */
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
 * Replaces a connection whose Redis has not greeted it in time: nothing is sent before that, so nothing else would
 * notice the silence. A Redis that is still loading its data therefore sees a new connection now and then.
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
 * Destroys the socket without QUIT: a dead connection would not answer it, `disconnect` would wait two seconds, and
 * each call would leave a listener. Once it has closed, ioredis opens a new one.
 */
function giveUp({ stream }: { readonly stream: Redis['stream'] | undefined }): void {
  stream?.destroy()
}

/**
 * Sends the commands that `calls` issues in one write per connection: each write is a system call, which costs more
 * than its bytes.
 */
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
