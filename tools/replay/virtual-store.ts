/** Counters on a clock set by the log; slots end with their request, or after `maxHold` on that clock. */
import { MemoryStore } from '../../gateway/decide/store/memory.js'
import { type Answer, type Ask, takesCredit } from '../../gateway/decide/store/store.js'
import type { Demand } from '../../gateway/demand.js'
import type { Limiter } from '../../gateway/plugin.js'
import { TimeHeap } from '../log/heap.js'

export class VirtualStore extends MemoryStore {
  readonly #clock: { ms: number }
  readonly #ends = new TimeHeap<() => void>()
  /** How long the slots of a demand may be held. */
  readonly #maxHolds = new WeakMap<Demand, number>()
  #durationMs = 0

  constructor() {
    const clock = { ms: 0 }
    super(() => clock.ms)
    this.#clock = clock
  }

  /** The time in the log, in milliseconds. */
  readonly now = (): number => this.#clock.ms

  /**
   * A request of this duration begins `at` this time, or now if that is past: first ends what has ended by then, each
   * at its own time, because a rule may charge when a request ends.
   */
  begin(at: number, durationMs: number): void {
    const begins = Math.max(this.#clock.ms, at)
    while ((this.#ends.next ?? Number.POSITIVE_INFINITY) <= begins) {
      const ended = this.#ends.take()
      this.#clock.ms = ended?.at ?? begins
      ended?.value()
    }
    this.#clock.ms = begins
    this.#durationMs = durationMs
  }

  /** Calls `end` when the current request has ended. */
  atEnd(end: () => void): void {
    this.#ends.add(this.now() + this.#durationMs, end)
  }

  /**
   * The limiter without lifetime windows, and without the timers that `maxHold` would set, which run on the real clock.
   */
  untimed(limiter: Limiter<unknown>): Limiter<unknown> {
    return {
      applies: (rule, facts) => limiter.applies?.(rule, facts) ?? true,
      demand: check => {
        const demand = withoutLifetimes(limiter.demand(check))
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
      if (maxHold < this.#durationMs) this.#ends.add(this.now() + maxHold, release)
    }
    return answers
  }
}

/** A log does not tell what was spent before it began, nor what credit was given. */
function withoutLifetimes(demand: Demand): Demand {
  if (!takesCredit(demand) || demand.kind !== 'windows') return demand
  return { ...demand, windows: demand.windows.filter(({ lifetime }) => !lifetime), made: {} }
}
