/**
 * Judges what the windows count, for limiters that count one key at a time: quota, block, and what happens while Redis is
 * away. A limit that changes applies at once, to windows and blocks that have begun too.
 */
import type { KeyCount, KeyCounter, KeyLimit, Spent } from '../../plugin.js'
import type { OnStoreError, StoreName } from '../../types.js'
import { BoundedMap } from './bounded-map.js'
import type { WindowCount, Windows } from './flexible.js'
import { partOf } from './resilient.js'

export interface WindowCounterOptions {
  /** Counts in this process. */
  readonly local: Windows
  /** Redis, and the guard of all calls to it; absent when this process counts alone. */
  readonly remote?: { readonly windows: Windows; readonly guard: Guard } | undefined
  /** Gateways that share the quotas: each may spend its part while Redis is away. */
  readonly instances: number
  /** Milliseconds, from any origin. */
  now(): number
}

interface Guard {
  /** The result of one call to Redis; undefined when it is away, failed or too late. Never rejects. */
  within<T>(key: string, call: () => Promise<T>): Promise<T | undefined>
}

/** A refusal by Redis that stands until its window ends, so that a flood costs Redis nothing. */
interface Refusal {
  readonly limit: KeyLimit
  readonly used: number
  readonly until: number
}

/** Bounds memory under a flood of keys; beyond it the oldest refusals are asked for again. */
const MOST_REFUSALS = 10_000

export class WindowCounter implements KeyCounter {
  readonly #options: WindowCounterOptions
  readonly #refusals = new BoundedMap<Refusal>(MOST_REFUSALS)

  constructor(options: WindowCounterOptions) {
    this.#options = options
  }

  spend(key: string, limit: KeyLimit, onStoreError: OnStoreError, cost = 1): Spent | Promise<Spent> {
    const { local, remote } = this.#options
    if (remote === undefined) return this.#count(local, key, limit, cost)
    return this.recall(key, limit) ?? this.#ask(remote, key, limit, onStoreError, cost)
  }

  async peek(key: string, limit: KeyLimit, onStoreError: OnStoreError, cost = 1): Promise<Spent> {
    const { local, remote } = this.#options
    if (remote === undefined) return look(local, key, limit, cost)
    const known = this.recall(key, limit)
    if (known !== undefined) return known
    const found = await remote.guard.within(key, () => look(remote.windows, key, limit, cost))
    return found ?? this.#standIn(limit, onStoreError, share => look(local, key, share, cost))
  }

  /** The refusal by Redis that still stands; one that was made under another limit does not. */
  recall(key: string, limit: KeyLimit): KeyCount | undefined {
    const refusal = this.#refusals.get(key)
    if (refusal === undefined) return undefined
    const resetMs = refusal.until - this.#options.now()
    if (resetMs <= 0 || !isSame(refusal.limit, limit)) {
      this.#refusals.delete(key)
      return undefined
    }
    return { granted: false, store: 'redis', quota: limit.quota, used: refusal.used, left: 0, resetMs }
  }

  /** Forgets that `key` was refused. */
  forget(key: string): void {
    this.#refusals.delete(key)
  }

  async #ask(
    { windows, guard }: NonNullable<WindowCounterOptions['remote']>,
    key: string,
    limit: KeyLimit,
    onStoreError: OnStoreError,
    cost: number,
  ): Promise<Spent> {
    const counted = await guard.within(key, () => this.#count(windows, key, limit, cost))
    if (counted === undefined) {
      return this.#standIn(limit, onStoreError, share => this.#count(this.#options.local, key, share, cost))
    }
    if (!counted.granted) {
      const until = this.#options.now() + counted.resetMs
      this.#refusals.set(key, { limit, used: counted.used as number, until })
    }
    return counted
  }

  async #count(windows: Windows, key: string, limit: KeyLimit, cost: number): Promise<KeyCount> {
    const found = await windows.count(key, limit.windowMs, cost)
    const count = judge(found, limit, cost, windows.store)
    const { resetMs, granted } = count
    if (resetMs !== found.leftMs) await windows.endIn(key, found.used, resetMs)
    if (!granted) {
      // One refusal is enough to tell that the quota was passed: more would outweigh a quota that is raised.
      if (!isFirstRefused(found, limit, cost)) await windows.giveBack(key, resetMs + 1, cost).catch(() => {})
      return count
    }
    const at = this.#options.now()
    const giveBack = () => {
      const leftNow = resetMs - (this.#options.now() - at)
      // Best effort: what is not given back ends with its window. The store's clock counts whole milliseconds.
      if (leftNow > 0) windows.giveBack(key, leftNow + 1, cost).catch(() => {})
    }
    return { ...count, giveBack }
  }

  /** @param here asks this process's own counters */
  #standIn(
    limit: KeyLimit,
    onStoreError: OnStoreError,
    here: (share: KeyLimit) => Promise<KeyCount>,
  ): Spent | Promise<Spent> {
    if (onStoreError === 'closed') return 'unavailable'
    if (onStoreError === 'open') {
      return {
        granted: true,
        store: 'none',
        quota: limit.quota,
        used: undefined,
        left: undefined,
        resetMs: 0,
      }
    }
    return here({ ...limit, quota: partOf(limit.quota, this.#options.instances) })
  }
}

/** What a window that holds this request, too, means under `limit`. */
function judge(found: WindowCount, limit: KeyLimit, cost: number, store: StoreName): KeyCount {
  const { quota, windowMs, blockMs } = limit
  const { leftMs } = found
  const granted = found.used <= quota
  const isFirst = isFirstRefused(found, limit, cost)
  const used = granted || isFirst ? found.used : found.used - cost
  const longest = granted ? windowMs : Math.max(windowMs, blockMs)
  const resetMs = isFirst && blockMs > leftMs ? blockMs : Math.min(leftMs, longest)
  return { granted, store, quota, used, left: Math.max(0, quota - used), resetMs }
}

/** True for the request that passes the quota: it counts, and begins the block. */
function isFirstRefused({ used }: WindowCount, { quota }: KeyLimit, cost: number): boolean {
  return used > quota && used - cost <= quota
}

/** What counting one more request would find. */
async function look(windows: Windows, key: string, limit: KeyLimit, cost: number): Promise<KeyCount> {
  const { used, leftMs } = (await windows.look(key)) ?? { used: 0, leftMs: limit.windowMs }
  return judge({ used: used + cost, leftMs }, limit, cost, windows.store)
}

function isSame(a: KeyLimit, b: KeyLimit): boolean {
  return a.quota === b.quota && a.windowMs === b.windowMs && a.blockMs === b.blockMs
}
