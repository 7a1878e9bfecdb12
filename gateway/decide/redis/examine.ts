/** What the configured Redis is like, found out by trying it: `sluice check --connect`. */

import { shownAddress } from './address.js'
import { hasSlots, movedText, type RedisClient, troubleOf } from './connection.js'
import { RedisStore } from './redis-store.js'

export interface Examined {
  /** Whether all keys can be counted there. */
  readonly counts: boolean
  readonly text: string
}

const PATIENCE_MS = 3000
const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** Connects, counts on a key of its own and runs a script over two slots; leaves nothing behind but that key, for a second. */
export async function examineRedis(url: string): Promise<Examined> {
  const redis = shownAddress(url)
  const store = new RedisStore({ url, log: quiet })
  try {
    if (!(await store.answers(PATIENCE_MS))) {
      const answered = await store.ping('').then(
        () => 'it answers too late',
        (error: Error) => error.message,
      )
      const reason = troubleOf(store.connection) ?? answered
      return { counts: false, text: troubleText(redis, reason) }
    }
    const refusal = await store.learnSlots(PATIENCE_MS)
    if (refusal !== undefined && !hasSlots(store.connection)) {
      return { counts: false, text: troubleText(redis, refusal) }
    }
    const kind = hasSlots(store.connection)
      ? 'keys live in slots, as in a Cluster, and each slot is asked by itself'
      : 'one server, and a script over two slots runs'
    const about = await aboutServer(store.connection)
    return { counts: true, text: `${about.name} at ${redis} counts: ${kind}. ${about.memory}` }
  } finally {
    await store.close()
  }
}

function troubleText(redis: string, reason: string): string {
  return reason.startsWith('MOVED ')
    ? `${movedText(redis)}.`
    : `Redis at ${redis} does not count (${reason}). Check its address, user and password, and whether this host may connect.`
}

/** Name, version and what happens when the memory is full, as far as the server tells. */
async function aboutServer(client: RedisClient): Promise<{ name: string; memory: string }> {
  const info = await client.info().catch(() => '')
  const lines = info.split('\r\n')
  const field = (name: string) => lines.find(line => line.startsWith(`${name}:`))?.slice(name.length + 1)
  const valkey = field('valkey_version')
  const version = valkey ?? field('redis_version') ?? 'of unknown version'
  return { name: `${valkey ? 'Valkey' : 'Redis'} ${version}`, memory: memoryText(field('maxmemory_policy')) }
}

function memoryText(policy: string | undefined): string {
  if (policy === undefined) return 'It does not say what happens when its memory is full.'
  return policy === 'noeviction'
    ? 'When its memory is full it refuses to count (noeviction), and each rule follows its onStoreError.'
    : `When its memory is full it may forget counters, whose quotas start again (${policy}): give it enough memory, or set noeviction.`
}
