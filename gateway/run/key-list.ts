/** The API keys as the admin port lists them. When each was last used is known to all gateways on one Redis. */
import { fileBeside } from '../../config/files.js'
import type { KeyList, ListedKey } from '../admin/key-list.js'
import type { Configuration } from '../configured/load.js'
import { KEY_SPACE } from '../decide/redis/key-space.js'
import { SideConnection } from '../decide/redis/side-connection.js'
import { type ApiKey, stateOf } from '../identify/api-keys/key-file.js'
import type { KeyStore } from '../identify/api-keys/key-store.js'
import { useKeys } from '../identify/api-keys/shared-keys.js'
import type { InUse } from '../identify/shared.js'
import type { Log } from '../types.js'

/** A hash of times in ms since the epoch, by the key's id. */
const USED = `${KEY_SPACE}keys-used`
/** How often last uses are collected, and passed on to Redis. */
const EXCHANGE_MS = 10_000
/** Ids and times: stores each that is later than what is known, and keeps the whole for 400 days. */
const LATEST = `for i = 1, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[1], ARGV[i])
  if not known or tonumber(known) < tonumber(ARGV[i + 1]) then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
redis.call('EXPIRE', KEYS[1], 34560000)`
const MOST = 1000

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
  /** Ids of the keys whose last uses somebody waits for. */
  readonly #wanted = new Set<string>()
  #store: { readonly file: string; readonly keys: InUse<KeyStore> } | undefined
  readonly #redis: SideConnection | undefined
  /** One at a time: what waits for a Redis that is silent must not pile up. */
  #exchanging: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  constructor(options: KeyListOptions) {
    this.#options = options
    this.#redis = options.redis === '' ? undefined : new SideConnection(options.redis, options.log)
    // From the start: workers that begin later learn from it what is in force.
    this.reloaded()
    this.#timer = setInterval(() => void this.#exchange(), EXCHANGE_MS).unref()
  }

  /** Another configuration is in force, perhaps with another file. */
  reloaded(): void {
    this.#storeNow()
  }

  async list(project?: string): Promise<KeyList> {
    const store = this.#storeNow()
    if (store === undefined) return { file: null, trouble: null, total: 0, keys: [] }
    await store.keys.value.look()
    const now = Date.now()
    const { keys, trouble = null } = store.keys.value
    const [active, others]: [ApiKey[], ApiKey[]] = [[], []]
    let total = 0
    for (const key of keys) {
      if (project !== undefined && key.project !== project) continue
      total += 1
      const like = stateOf(key, now) === 'active' ? active : others
      if (like.length < MOST) like.push(key)
    }
    const shown = [...active, ...others].slice(0, MOST)
    await this.#exchange(shown)
    return {
      file: store.file,
      trouble,
      total,
      keys: shown.map(key => listed(key, this.#used.get(key.id), now)),
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#exchange()
    this.#store?.keys.release()
    this.#redis?.close()
  }

  /** The keys in force: in this process they are those of its identifiers. */
  #storeNow() {
    const { gateway, gatewayFile } = this.#options.loaded().config
    const file = gateway.apiKeys === undefined ? undefined : fileBeside(gatewayFile, gateway.apiKeys)
    if (this.#store?.file !== file) {
      const { log } = this.#options
      const next = file === undefined ? undefined : { file, keys: useKeys(file, log) }
      this.#store?.keys.release()
      this.#store = next
    }
    return this.#store
  }

  /** Never rejects: without the last uses a list is still worth having. */
  #exchange(wanted: readonly ApiKey[] = []): Promise<void> {
    if (this.#storeNow() === undefined) return Promise.resolve()
    for (const { id } of wanted) this.#wanted.add(id)
    this.#exchanging ??= this.#collect()
      .catch(this.#failed)
      .finally(() => {
        this.#wanted.clear()
        this.#exchanging = undefined
      })
    return this.#exchanging
  }

  /** Takes over what the processes have seen, passes it on to the other gateways, and learns what is wanted. */
  async #collect(): Promise<void> {
    for (const [id, at] of await this.#options.uses()) {
      if (this.#take(id, at)) this.#unsent.set(id, at)
    }
    const redis = this.#redis
    if (redis === undefined || this.#unsent.size + this.#wanted.size === 0) return
    for (const part of parts([...this.#unsent], MOST)) {
      await redis.call(USED, client => client.eval(LATEST, 1, USED, ...part.flat()))
      for (const [id, at] of part) if (this.#unsent.get(id) === at) this.#unsent.delete(id)
    }
    // Not all of them: 50,000 would stop the event loop for a fifth of a second.
    while (this.#wanted.size > 0) {
      const ids = [...this.#wanted].slice(0, MOST)
      for (const id of ids) this.#wanted.delete(id)
      const known = await redis.call(USED, client => client.hmget(USED, ...ids))
      for (const [i, id] of ids.entries()) this.#take(id, Number(known[i]))
    }
  }

  #take(id: string, at: number): boolean {
    if (!(at > (this.#used.get(id) ?? 0))) return false
    this.#used.set(id, at)
    return true
  }

  readonly #failed = (error: unknown): void => {
    this.#options.log.debug({ err: error }, 'last uses of API keys')
  }
}

function parts<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))
}

function listed(key: ApiKey, usedAt: number | undefined, now: number): ListedKey {
  const { id, project, name, prefix, scopes, created, expires = null, revoked = null } = key
  const last_used = usedAt === undefined ? null : new Date(usedAt).toISOString()
  return { id, project, name, prefix, state: stateOf(key, now), scopes, created, expires, revoked, last_used }
}
