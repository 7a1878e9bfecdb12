/**
 * Windows that begin with a key's first request, counted by rate-limiter-flexible: in this process or in Redis.
 * The home of that package. It counts; what a count means is judged in key-counter.ts, because limits may change while
 * their counters live.
 */
import type { Result } from 'ioredis'
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { StoreName } from '../../types.js'
import { isReportOnlyKey } from '../key.js'
import { BoundedMap } from './bounded-map.js'
import { type RedisClient, script } from './redis-connection.js'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    giveBack(key: string, mostLeftMs: number, cost: number): Result<number, Context>
  }
}

/** A window right after a request was counted. */
export interface WindowCount {
  /** Requests, this one included. */
  readonly used: number
  /** Milliseconds until the window ends. */
  readonly leftMs: number
}

export interface Windows {
  readonly store: StoreName
  /** Counts one request of `key`, as `cost` of them; a new window lasts `windowMs`, in whole seconds. */
  count(key: string, windowMs: number, cost?: number): Promise<WindowCount>
  /** The key's window as it is; undefined when it has none. Counts nothing. */
  look(key: string): Promise<WindowCount | undefined>
  /** Lets the window that holds `used` requests end `ms` from now. */
  endIn(key: string, used: number, ms: number): Promise<void>
  /** Takes one request back, unless its window has ended: the key's present window has at most `mostLeftMs` to go then. */
  giveBack(key: string, mostLeftMs: number, cost?: number): Promise<void>
}

/** Names are complete as they come; quota and length belong to a call, not to the limiter. */
const UNJUDGED = { keyPrefix: '', points: 1, duration: 1 }

/** Bounds memory under a flood of keys: beyond it the oldest windows are forgotten, and so the oldest blocks. */
export const MOST_KEYS = 100_000

/** The keys that are counted, each in one place: a flood of fresh keys frees nobody who is blocked. */
class KnownKeys {
  readonly #open = new BoundedMap<true>(MOST_KEYS)
  readonly #blocked = new BoundedMap<true>(MOST_KEYS)

  /** `key` begins a window; returns the key to forget for it. */
  begins(key: string): string | undefined {
    this.#blocked.delete(key)
    return this.#open.set(key, true)
  }

  /** The end of `key`'s window was moved, as a block does; returns the key to forget for it. */
  moves(key: string): string | undefined {
    this.#open.delete(key)
    return this.#blocked.set(key, true)
  }
}

export class MemoryWindows implements Windows {
  readonly store: StoreName
  readonly #limiter = new RateLimiterMemory(UNJUDGED)
  /** Report-only rules have places of their own: what they see may not end what enforced ones count. */
  readonly #enforced = new KnownKeys()
  readonly #observed = new KnownKeys()

  constructor(store: StoreName) {
    this.store = store
  }

  async count(key: string, windowMs: number, cost = 1): Promise<WindowCount> {
    const counted = await countOne(this.#limiter, key, windowMs, cost)
    if (counted.used === cost) await this.#forget(this.#keysOf(key).begins(key))
    return counted
  }

  look(key: string): Promise<WindowCount | undefined> {
    return lookAt(this.#limiter, key)
  }

  async endIn(key: string, used: number, ms: number): Promise<void> {
    await this.#limiter.set(key, used, ms / 1000)
    await this.#forget(this.#keysOf(key).moves(key))
  }

  /** Forgets the window of `key`. */
  async forget(key: string): Promise<void> {
    await this.#limiter.delete(key)
  }

  async giveBack(key: string, mostLeftMs: number, cost = 1): Promise<void> {
    const present = await this.#limiter.get(key)
    if (present === null || present.msBeforeNext <= 0 || present.msBeforeNext > mostLeftMs) return
    const { consumedPoints } = await this.#limiter.reward(key, cost)
    // The window ended between the two calls: what stands now would be a bonus.
    if (consumedPoints < 0) await this.#limiter.delete(key)
  }

  #keysOf(key: string): KnownKeys {
    return isReportOnlyKey(key) ? this.#observed : this.#enforced
  }

  async #forget(key: string | undefined): Promise<void> {
    if (key !== undefined) await this.#limiter.delete(key)
  }
}

export class RedisWindows implements Windows {
  readonly store = 'redis'
  readonly #redis: RedisClient
  readonly #limiter: RateLimiterRedis

  constructor(redis: RedisClient) {
    this.#redis = redis
    this.#limiter = new RateLimiterRedis({ ...UNJUDGED, storeClient: redis })
    redis.defineCommand('giveBack', { numberOfKeys: 1, lua: script('give-back-1') })
  }

  /** A key that lost its expiry gets a new one here, so nobody is locked out for longer than a window. */
  count(key: string, windowMs: number, cost = 1): Promise<WindowCount> {
    return countOne(this.#limiter, key, windowMs, cost)
  }

  look(key: string): Promise<WindowCount | undefined> {
    return lookAt(this.#limiter, key)
  }

  async endIn(key: string, _used: number, ms: number): Promise<void> {
    await this.#redis.pexpire(key, ms)
  }

  async giveBack(key: string, mostLeftMs: number, cost = 1): Promise<void> {
    await this.#redis.giveBack(key, Math.ceil(mostLeftMs), cost)
  }
}

/** A penalty counts as a request does, and tells what it found whatever the quota. */
async function countOne(
  limiter: RateLimiterAbstract,
  key: string,
  windowMs: number,
  cost: number,
): Promise<WindowCount> {
  const options = { customDuration: windowMs / 1000 }
  const { consumedPoints, msBeforeNext } = await limiter.penalty(key, cost, options)
  return { used: consumedPoints, leftMs: msBeforeNext }
}

async function lookAt(limiter: RateLimiterAbstract, key: string): Promise<WindowCount | undefined> {
  const present = await limiter.get(key)
  if (present === null || present.msBeforeNext <= 0) return undefined
  return { used: present.consumedPoints, leftMs: present.msBeforeNext }
}
