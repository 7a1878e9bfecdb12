/** The API keys as the admin port lists them. When each was last used is known to all gateways on one Redis. */
import { once } from 'node:events'
import { fileBeside } from '../../config/files.js'
import type { KeyList, ListedKey } from '../admin/key-list.js'
import type { Configuration } from '../configured/load.js'
import { connectRedis, type RedisClient } from '../decide/redis/connection.js'
import { KEY_SPACE } from '../decide/redis/key-space.js'
import { type ApiKey, stateOf } from '../identify/api-keys/key-file.js'
import { readKeys } from '../identify/api-keys/key-store.js'
import type { Log } from '../types.js'

/** A hash of times in ms since the epoch, by the key's id. */
const USED = `${KEY_SPACE}keys-used`
/** How often last uses are collected, and passed on to Redis. */
const COLLECT_MS = 10_000
const MOST = 1000
const PATIENCE_MS = 1000

/** When keys were last used, by id, in ms since the epoch. */
export type KeyUses = readonly (readonly [id: string, at: number])[]

export interface KeyListOptions {
  /** The configuration in force. */
  loaded(): Configuration
  /** The uses that the processes which take requests have seen. */
  uses(): KeyUses | Promise<KeyUses>
  /** Address of Redis; '' for none. */
  readonly redis: string
  readonly log: Log
}

export class KeyLister {
  readonly #options: KeyListOptions
  readonly #used = new Map<string, number>()
  /** What Redis has not been told. */
  readonly #unsent = new Map<string, number>()
  #redis: RedisClient | undefined
  readonly #timer: NodeJS.Timeout

  constructor(options: KeyListOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#collect().catch(this.#failed), COLLECT_MS).unref()
  }

  async list(project?: string): Promise<KeyList> {
    const { gateway, gatewayFile } = this.#options.loaded().config
    if (gateway.apiKeys === undefined) return { file: null, trouble: null, total: 0, keys: [] }
    const file = fileBeside(gatewayFile, gateway.apiKeys)
    try {
      const now = Date.now()
      const all = readKeys(file).filter(key => project === undefined || key.project === project)
      // Without them the list is still worth having.
      await Promise.all([this.#collect().catch(this.#failed), this.#learn().catch(this.#failed)])
      const keys = all.map(key => listed(key, this.#used.get(key.id), now))
      const [active, others] = [true, false].map(works =>
        keys.filter(key => (key.state === 'active') === works),
      )
      const shown = [...(active ?? []), ...(others ?? [])].slice(0, MOST)
      return { file, trouble: null, total: keys.length, keys: shown }
    } catch (error) {
      return { file, trouble: (error as Error).message, total: 0, keys: [] }
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#collect().catch(this.#failed)
    this.#redis?.disconnect()
  }

  /** Takes over what the processes have seen, and passes it on to the other gateways. */
  async #collect(): Promise<void> {
    if (this.#options.loaded().config.gateway.apiKeys === undefined) return
    for (const [id, at] of await this.#options.uses()) {
      if (this.#take(id, at)) this.#unsent.set(id, at)
    }
    if (this.#unsent.size === 0) return
    const sent = [...this.#unsent]
    await this.#inTime(redis => redis.hset(USED, Object.fromEntries(sent)))
    for (const [id, at] of sent) if (this.#unsent.get(id) === at) this.#unsent.delete(id)
  }

  /** Takes over what other gateways have seen. */
  async #learn(): Promise<void> {
    const known = await this.#inTime(redis => redis.hgetall(USED))
    for (const [id, text] of Object.entries(known ?? {})) this.#take(id, Number(text))
  }

  #take(id: string, at: number): boolean {
    if (!(at > (this.#used.get(id) ?? 0))) return false
    this.#used.set(id, at)
    return true
  }

  /** What Redis says; rejects if it does not in time. Undefined without Redis. */
  async #inTime<T>(ask: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    const { redis: url, log } = this.#options
    if (url === '') return undefined
    this.#redis ??= connectRedis(url, log)
    const redis = this.#redis
    const asked = redis.status === 'ready' ? ask(redis) : once(redis, 'ready').then(() => ask(redis))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('Redis has not answered in time.')), PATIENCE_MS)
    })
    return Promise.race([asked, late]).finally(() => clearTimeout(timer))
  }

  readonly #failed = (error: unknown): void => {
    this.#options.log.debug({ err: error }, 'last uses of API keys')
  }
}

function listed(key: ApiKey, usedAt: number | undefined, now: number): ListedKey {
  const { id, project, name, prefix, scopes, created, expires = null, revoked = null } = key
  const last_used = usedAt === undefined ? null : new Date(usedAt).toISOString()
  return { id, project, name, prefix, state: stateOf(key, now), scopes, created, expires, revoked, last_used }
}
