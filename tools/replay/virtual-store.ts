/** Counters on a clock set by the log; slots end with their request, or after `maxHold` on that clock. */
import { MemoryStore } from '../../gateway/decide/store/memory.js'
import type { Answer, Ask } from '../../gateway/decide/store/store.js'
import type { Limiter } from '../../gateway/plugin.js'
import type { Demand } from '../../gateway/types.js'
import { TimeHeap } from '../log/heap.js'

export class VirtualStore extends MemoryStore {
  readonly #now: () => number
  readonly #ends = new TimeHeap<() => void>()
  /** How long the slots of a demand may be held. */
  readonly #maxHolds = new WeakMap<Demand, number>()
  #durationMs = 0

  constructor(now: () => number) {
    super(now)
    this.#now = now
  }

  /** A request of this duration begins now: first releases what has ended by now. */
  begin(durationMs: number): void {
    this.#durationMs = durationMs
    const now = this.#now()
    while ((this.#ends.next ?? Number.POSITIVE_INFINITY) <= now) this.#ends.take()?.value()
  }

  /** Calls `end` when the current request has ended. */
  atEnd(end: () => void): void {
    this.#ends.add(this.#now() + this.#durationMs, end)
  }

  /** The limiter without the timers that `maxHold` would set, which run on the real clock. */
  untimed(limiter: Limiter<unknown>): Limiter<unknown> {
    return {
      applies: (rule, facts) => limiter.applies?.(rule, facts) ?? true,
      demand: check => {
        const demand = limiter.demand(check)
        if (demand.kind !== 'slots' || demand.maxHoldMs === undefined) return demand
        const untimed = { ...demand, maxHoldMs: undefined }
        this.#maxHolds.set(untimed, demand.maxHoldMs)
        return untimed
      },
    }
  }

  override take(asks: readonly Ask[]): Answer[] {
    const answers = super.take(asks)
    for (const [i, { release }] of answers.entries()) {
      if (release === undefined) continue
      const maxHold = this.#maxHolds.get((asks[i] as Ask).demand) ?? Number.POSITIVE_INFINITY
      if (maxHold < this.#durationMs) this.#ends.add(this.#now() + maxHold, release)
    }
    return answers
  }
}
