/**
 * Measures the demand of a rule's keys, refused or not: how many requests of one key fall into one window, and how many
 * are in flight at once. Counted by the gateway's own store, with quotas that are never reached.
 */
import { MemoryStore } from '../../gateway/decide/store/memory.js'
import type { Ask } from '../../gateway/decide/store/store.js'
import type { Demand } from '../../gateway/demand.js'
import type { Beside } from '../../gateway/observe/record-types.js'
import { TimeHeap } from '../log/heap.js'

const UNREACHED = Number.MAX_SAFE_INTEGER

/** Policies with their own levels; more than any configuration has, so that a hostile log cannot fill the memory. */
const MOST_POLICIES = 10_000

export class DemandMeter {
  #now = 0
  readonly #store = new MemoryStore(() => this.#now)
  readonly #ends = new TimeHeap<() => void>()
  /** How often each level of demand was seen, by policy. */
  readonly #seen = new Map<string, Levels>()

  /** Adds one request under one rule, in order of time; `durationMs` is how long it held its slot. */
  add({ rule, key, counters: all }: Beside, at: number, durationMs: number): void {
    // The log does not contain costs that depend on the response, nor what a lifetime window spent before it.
    const counters = all.filter(({ cost, lifetime }) => cost !== 0 && !lifetime)
    this.#now = Math.max(this.#now, at)
    while ((this.#ends.next ?? Number.POSITIVE_INFINITY) <= this.#now) this.#ends.take()?.value()
    const asks = counters.map(({ policy, w_ms: ms }): Ask => {
      const demand: Demand = ms
        ? {
            kind: 'windows',
            windows: [{ name: policy, quota: UNREACHED, ms, algorithm: 'sliding-window' }],
            lease: false,
          }
        : { kind: 'slots', max: UNREACHED, ttlMs: 0 }
      return { key: `${rule} ${policy} ${key}`, demand, group: 0, onStoreError: 'open' }
    })
    for (const [i, answer] of this.#store.take(asks).entries()) {
      const { policy, cost = 1 } = counters[i] as (typeof counters)[number]
      this.#levelsOf(policy)?.add((answer.counts[0]?.used as number) * cost)
      if (answer.release !== undefined) this.#ends.add(this.#now + durationMs, answer.release)
    }
  }

  /** The quota under which `percent` of the requests would have passed; undefined when there were none. */
  percentile(policy: string, percent: number): number | undefined {
    return this.#seen.get(policy)?.percentile(percent)
  }

  #levelsOf(policy: string): Levels | undefined {
    const present = this.#seen.get(policy)
    if (present !== undefined || this.#seen.size >= MOST_POLICIES) return present
    const levels = new Levels()
    this.#seen.set(policy, levels)
    return levels
  }
}

/** Levels from this on are rounded up to three digits, so that their number stays bounded. */
const EXACT_BELOW = 1000

/** How often each level was seen. */
class Levels {
  readonly #times = new Map<number, number>()
  #total = 0

  add(level: number): void {
    const rounded = level < EXACT_BELOW ? level : roundUp(level)
    this.#times.set(rounded, (this.#times.get(rounded) ?? 0) + 1)
    this.#total += 1
  }

  /** The lowest level that `percent` of the requests do not exceed. */
  percentile(percent: number): number | undefined {
    let rest = Math.ceil((this.#total * percent) / 100)
    for (const level of [...this.#times.keys()].sort((a, b) => a - b)) {
      rest -= this.#times.get(level) as number
      if (rest <= 0) return level
    }
    return undefined
  }
}

function roundUp(level: number): number {
  const unit = 10 ** (Math.floor(Math.log10(level)) - 2)
  return Math.ceil(level / unit) * unit
}
