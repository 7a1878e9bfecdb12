/**
 * Throttles wrong keys: those sent to this port, and those that the embedded services report. The home file of
 * rate-limiter-flexible.
 */
import { createHash } from 'node:crypto'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { Log } from '../types.js'

/** What a key was for. */
export type Area = 'admin' | 'management' | 'scim' | 'identity' | 'routes'

/** Answered with 401, or made to wait. */
export type WrongKeyOutcome = 'refused' | 'throttled'

export interface WrongKeysOptions {
  /** The connection to Redis, of whatever kind, if the gateway counts there; Redis may be away. Keys get the prefix. */
  readonly redis?: { readonly storeClient: object; readonly keyPrefix: string } | undefined
  /** What an address is counted by. */
  networkOf(address: string): string
  readonly log: Log
}

/** Wrong keys per minute: of one sender, and of one key wherever it comes from. */
const MOST = { source: 20, key: 100 }
const SECONDS = 60
/** If Redis takes longer, this process's own count decides. */
const DEADLINE_MS = 250
const QUIET_MS = 10_000

/**
 * Counts wrong keys by source and by key. The right key is never counted and always accepted, so nobody can lock
 * another out, not even behind the same address. Gateways that share a Redis count together.
 */
export class WrongKeys {
  readonly #local = new RateLimiterMemory({ points: MOST.source, duration: SECONDS })
  readonly #shared: RateLimiterRedis | undefined
  readonly #networkOf: WrongKeysOptions['networkOf']
  readonly #log: Log
  readonly #counts = new Map<string, number>()
  #quietUntil = Number.NEGATIVE_INFINITY
  #unsaid = 0

  constructor({ redis, networkOf, log }: WrongKeysOptions) {
    this.#networkOf = networkOf
    this.#log = log
    this.#shared = redis && new RateLimiterRedis({ ...redis, points: MOST.source, duration: SECONDS })
  }

  /**
   * Counts a wrong key. Resolves to the seconds that its sender has to wait, undefined if it need not; never rejects.
   */
  async sent(area: Area, source: string, key: string): Promise<number | undefined> {
    const network = this.#networkOf(source)
    const [bySource, byKey] = await Promise.all([
      this.#count(area, 'source', network),
      this.#count(area, 'key', key),
    ])
    const waits = [...this.#beyond(bySource, MOST.source), ...this.#beyond(byKey, MOST.key)]
    const outcome: WrongKeyOutcome = waits.length > 0 ? 'throttled' : 'refused'
    const cell = `${area} ${outcome}`
    this.#counts.set(cell, (this.#counts.get(cell) ?? 0) + 1)
    if (waits.length === 0) return undefined
    if (bySource.times === MOST.source + 1 || byKey.times === MOST.key + 1) this.#warn(area, network)
    return Math.ceil(Math.max(1000, ...waits) / 1000)
  }

  /** All wrong keys so far. */
  *counts(): Iterable<{ readonly area: Area; readonly outcome: WrongKeyOutcome; readonly times: number }> {
    for (const [cell, times] of this.#counts) {
      const [area, outcome] = cell.split(' ') as [Area, WrongKeyOutcome]
      yield { area, outcome, times }
    }
  }

  #beyond({ times, msLeft }: Counted, most: number): number[] {
    return times > most ? [msLeft] : []
  }

  /**
   * Hashes sources and keys into a bounded number of counters, so that no flood fills the memory. A sender that shares
   * a counter with a flood gets 429 instead of 401 for a wrong key, and nothing worse.
   */
  async #count(area: Area, kind: 'source' | 'key', text: string): Promise<Counted> {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 4)
    const counter = `${area}:${kind}:${hash}`
    const local = await this.#local.penalty(counter).then(counted)
    if (this.#shared === undefined) return local
    const shared = await Promise.race([this.#shared.penalty(counter).then(counted), late()]).catch(
      () => undefined,
    )
    return shared !== undefined && shared.times > local.times ? shared : local
  }

  /** One log line when a sender has to wait; with many, one in ten seconds. */
  #warn(area: Area, source: string): void {
    const now = performance.now()
    if (now < this.#quietUntil) {
      this.#unsaid += 1
      return
    }
    const others = this.#unsaid === 0 ? {} : { others: this.#unsaid }
    this.#quietUntil = now + QUIET_MS
    this.#unsaid = 0
    this.#log.warn({ area, source, ...others }, 'Too many wrong keys: their sender gets 429')
  }
}

interface Counted {
  readonly times: number
  readonly msLeft: number
}

function counted({
  consumedPoints,
  msBeforeNext,
}: {
  consumedPoints: number
  msBeforeNext: number
}): Counted {
  return { times: consumedPoints, msLeft: msBeforeNext }
}

function late(): Promise<undefined> {
  return new Promise(resolve => setTimeout(() => resolve(undefined), DEADLINE_MS).unref())
}
