/** Counters in Redis: one script call per request. The home file of ioredis. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis, type Result } from 'ioredis'
import type { Log } from '../../types.js'
import { RedisSlots } from './slots.js'
import {
  type Answer,
  type Ask,
  type Count,
  counted,
  type RemoteStore,
  SLOT_RETRY_MS,
  uncounted,
} from './store.js'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    take(keyCount: number, ...keysAndArgs: (string | number)[]): Result<number[], Context>
    renew(key: string, holder: string, ttlUs: number): Result<number, Context>
  }
}

const PING_PATIENCE_MS = 1000
const CONNECT_TICK_MS = 10

/** Verdicts of `take.lua` on one ask. */
const GRANTED = 1
const BROKEN = -1

const PROBE: Ask = {
  key: 'sluice:{probe}',
  demand: {
    kind: 'windows',
    windows: [{ name: 'probe', quota: 1_000_000, ms: 1000, algorithm: 'sliding-window' }],
    lease: false,
  },
  group: 0,
  onStoreError: 'open',
}

export interface RedisStoreOptions {
  readonly url: string
  readonly log: Log
  /** Microseconds; for tests in virtual time. Unset means Redis's own clock. */
  readonly clock?: () => number
}

export class RedisStore implements RemoteStore {
  readonly #redis: Redis
  readonly #clock: (() => number) | undefined
  readonly #slots: RedisSlots

  constructor({ url, log, clock }: RedisStoreOptions) {
    this.#clock = clock
    this.#redis = connect(url, log)
    this.#slots = new RedisSlots(this.#redis, log, () => this.#redis.disconnect(true))
  }

  /** For those who count by other means. */
  get connection(): Redis {
    return this.#redis
  }

  async take(asks: readonly Ask[], holder: string): Promise<Answer[]> {
    const keys = asks.map(ask => ask.key)
    const args = asks.flatMap(argsOf)
    const result = await this.#redis.take(keys.length, ...keys, this.#clock?.() ?? '', 1, holder, ...args)
    const reader = result.slice(1)[Symbol.iterator]()
    return asks.map(ask => this.#answer(ask, holder, () => reader.next().value as number))
  }

  /**
   * Counts once for nobody: a Redis that is loading, read-only or out of memory answers PING, but does not count.
   * Rejects when it fails; a connection that swallows bytes is given up for a new one.
   */
  async ping(): Promise<void> {
    const timer = setTimeout(() => this.#redis.disconnect(true), PING_PATIENCE_MS)
    try {
      await this.take([PROBE], '')
    } finally {
      clearTimeout(timer)
    }
  }

  /** Whether Redis answers within `patienceMs`: at the start a connection needs its moment. */
  async answers(patienceMs: number): Promise<boolean> {
    const until = performance.now() + patienceMs
    while (performance.now() < until) {
      const isThere = await this.ping().then(
        () => true,
        () => false,
      )
      if (isThere) return true
      await sleep(CONNECT_TICK_MS)
    }
    return false
  }

  giveBack(_asks: readonly Ask[], answers: readonly Answer[]): void {
    for (const answer of answers) answer.release?.()
  }

  async close(): Promise<void> {
    this.#slots.close()
    this.#redis.disconnect()
  }

  #answer(ask: Ask, holder: string, next: () => number): Answer {
    const code = next()
    const granted = code === GRANTED
    const { demand } = ask
    const quotas = demand.kind === 'windows' ? demand.windows.map(window => window.quota) : [demand.max]
    const counts = quotas.map((quota): Count => {
      const used = next()
      const violated = next() === 1 && !granted
      const resetMs = next() / 1000
      return counted(quota, used, violated, demand.kind === 'slots' ? SLOT_RETRY_MS : resetMs)
    })
    if (code === BROKEN) return { granted, unavailable: true, store: 'none', counts: uncounted(ask) }
    const slot = granted && demand.kind === 'slots' && this.#slots.hold(ask.key, holder, demand.ttlMs)
    return { granted, unavailable: false, store: 'redis', counts, ...slot }
  }
}

function argsOf({ demand, group }: Ask): (string | number)[] {
  if (demand.kind === 'slots') return [group, 's', 2, demand.max, demand.ttlMs * 1000]
  const values = demand.windows.flatMap(({ quota, ms, algorithm }) => [
    quota,
    ms * 1000,
    algorithm[0] as string,
  ])
  return [group, 'w', values.length, ...values]
}

/**
 * Nothing is queued or sent again while Redis is away: a late burst of charges would be worse than none.
 * The connection comes back by itself, also when Redis was down at the start.
 */
function connect(url: string, log: Log): Redis {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    retryStrategy: attempt => Math.min(50 * 2 ** Math.min(attempt, 6), 1000),
  })
  redis.defineCommand('take', { lua: script('window') + script('take') })
  redis.defineCommand('renew', { numberOfKeys: 1, lua: script('renew-1') })
  redis.on('error', error => log.debug({ err: error }, 'redis connection'))
  redis.connect().catch(error => log.debug({ err: error }, 'redis connection'))
  return redis
}

function script(name: string): string {
  return readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8')
}
