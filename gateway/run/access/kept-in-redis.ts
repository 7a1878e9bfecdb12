/** Access entries in Redis, where every gateway and worker looks each second whether they have changed. */
import { randomUUID } from 'node:crypto'
import { Unreachable } from '../../admin/refusals.js'
import { connectRedis, type RedisClient, reconnect } from '../../decide/store/redis-connection.js'
import { KEY_SPACE } from '../../redis-keys.js'
import type { Log } from '../../types.js'
import type { RuntimeEntry } from './entry.js'
import type { Kept } from './kept.js'

/** A hash of entries by id. */
const KEY = `${KEY_SPACE}access`
/** Its field that is another after each change; no id begins so. */
const VERSION = '#'
const LOOK_EVERY_MS = 1000
/** An answer that takes longer will not come. */
const PATIENCE_MS = 1000

export class KeptInRedis implements Kept {
  entries: ReadonlyMap<string, RuntimeEntry> = new Map()
  readonly #redis: RedisClient
  readonly #changed: () => void
  readonly #log: Log
  readonly #timer: NodeJS.Timeout
  #version: string | undefined
  #looking: Promise<void> | undefined

  /** A connection of its own keeps it out of the way of requests. `changed` hears of each change, whoever made it. */
  constructor(url: string, changed: () => void, log: Log) {
    this.#redis = connectRedis(url, log)
    this.#changed = changed
    this.#log = log
    this.#timer = setInterval(() => void this.look().catch(() => undefined), LOOK_EVERY_MS).unref()
  }

  /** Takes up what has changed. Rejects while Redis is away: then the last known entries stay. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Resolves when the entries are known, or when Redis does not answer in time. */
  async opened(): Promise<void> {
    const since = performance.now()
    while (performance.now() - since < PATIENCE_MS) {
      const isKnown = await this.look().then(
        () => true,
        () => false,
      )
      if (isKnown) return
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }

  async change(put: RuntimeEntry | undefined, dropped: readonly string[]): Promise<void> {
    try {
      // First what a Redis without its memory has to be told.
      await this.look()
      const steps = this.#redis.multi()
      if (dropped.length > 0) steps.hdel(KEY, ...dropped)
      if (put !== undefined) steps.hset(KEY, put.id, JSON.stringify(put))
      const done = await this.#within(steps.hset(KEY, VERSION, randomUUID()).exec())
      const failed = done?.find(([error]) => error !== null)?.[0]
      if (failed) throw failed
      // A look that began before is of no use.
      await this.#looking
      await this.look()
    } catch (error) {
      throw new Unreachable('Redis cannot be told now.', { cause: error })
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#redis.disconnect()
  }

  async #look(): Promise<void> {
    const version = await this.#within(this.#redis.hget(KEY, VERSION))
    if (version === null) return this.#restore()
    if (version === this.#version) return
    const { [VERSION]: read, ...texts } = await this.#within(this.#redis.hgetall(KEY))
    this.entries = new Map(Object.entries(texts).flatMap(([id, text]) => this.#read(id, text)))
    this.#version = read
    this.#changed()
  }

  /** A Redis that comes back without its memory: what was in force stays in force. */
  async #restore(): Promise<void> {
    if (this.#version === undefined) return
    const texts = [...this.entries].map(([id, entry]) => [id, JSON.stringify(entry)])
    await this.#within(this.#redis.hset(KEY, { ...Object.fromEntries(texts), [VERSION]: this.#version }))
    this.#log.warn({ entries: texts.length }, 'Redis had lost the access entries: they were put back')
  }

  #read(id: string, text: string): [string, RuntimeEntry][] {
    try {
      return [[id, JSON.parse(text) as RuntimeEntry]]
    } catch (error) {
      this.#log.error({ err: error, id }, 'an access entry in Redis cannot be read')
      return []
    }
  }

  /** Gives up a connection that swallows bytes. */
  async #within<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reconnect(this.#redis, KEY)
        reject(new Error(`Redis has not answered within ${PATIENCE_MS} ms.`))
      }, PATIENCE_MS)
    })
    return Promise.race([answer, late]).finally(() => clearTimeout(timer))
  }
}
