/** A connection to Redis for what no request waits for. */
import { once } from 'node:events'
import type { Log } from '../../types.js'
import { connectRedis, type RedisClient, reconnect } from './connection.js'

const PATIENCE_MS = 1000

/** Opened when it is first used. */
export class SideConnection {
  readonly #url: string
  readonly #log: Log
  #redis: RedisClient | undefined
  #opening: Promise<unknown> | undefined

  constructor(url: string, log: Log) {
    this.#url = url
    this.#log = log
  }

  /** Rejects when Redis does not answer in time; the connection to the node of `key` is then replaced. */
  async call<T>(key: string, command: (redis: RedisClient) => Promise<T>): Promise<T> {
    this.#redis ??= connectRedis(this.#url, this.#log)
    const redis = this.#redis
    if (redis.status !== 'ready') await this.#ready(redis, key)
    return inTime(redis, key, command(redis))
  }

  /** One wait for all calls: each would add listeners to the connection. */
  #ready(redis: RedisClient, key: string): Promise<unknown> {
    if (this.#opening !== undefined) return this.#opening
    const end = new AbortController()
    this.#opening = inTime(redis, key, once(redis, 'ready', end)).finally(() => {
      end.abort()
      this.#opening = undefined
    })
    return this.#opening
  }

  close(): void {
    this.#redis?.disconnect()
  }
}

async function inTime<T>(redis: RedisClient, key: string, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reconnect(redis, key)
      reject(new Error('Redis has not answered in time.'))
    }, PATIENCE_MS)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}
