/**
 * Refusals of Redis, remembered: a refused key is refused here until it could pass, so a flood costs Redis nothing. An entry
 * holds only for the quota it was made under.
 */
import type { Demand } from '../types.js'
import { BoundedMap } from './store/bounded-map.js'
import { type Answer, type Ask, type Count, counted, sameQuota } from './store/store.js'

interface Denial {
  readonly demand: Demand
  readonly answer: Answer
  readonly at: number
  readonly until: number
}

/** Bounds memory under a flood of keys; beyond it the oldest refusals are asked for again. */
const MOST = 10_000

export class Denials {
  readonly #now: () => number
  readonly #denials = new BoundedMap<Denial>(MOST)

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number) {
    this.#now = now
  }

  get empty(): boolean {
    return this.#denials.size === 0
  }

  forget(key: string): void {
    this.#denials.delete(key)
  }

  /** The refusal that still holds for this ask, its times counted down; windows that have room again are not named. */
  recall({ key, demand }: Ask): Answer | undefined {
    const denial = this.#denials.get(key)
    if (denial === undefined) return undefined
    const now = this.#now()
    if (!sameQuota(denial.demand, demand) || denial.until <= now) {
      this.#denials.delete(key)
      return undefined
    }
    const elapsed = now - denial.at
    const counts = denial.answer.counts.map((count, i) => later(count, elapsed, lengthOf(demand, i)))
    return { ...denial.answer, counts }
  }

  /**
   * Keeps an answer when it is a refusal by Redis that time alone will end; slots come back at any moment, and so does what
   * is only reserved: a meter that refuses for good has passed its quota.
   */
  remember({ key, demand }: Ask, answer: Answer): void {
    if (demand.kind === 'slots' || answer.granted || answer.store !== 'redis') return
    if (demand.kind === 'meter' && answer.counts.every(({ quota, used = 0 }) => used <= quota)) return
    // Never beyond what the client was told, whatever the lenders' clock says.
    const forMs = Math.min(longestViolation(answer), answer.askAgainMs ?? Number.POSITIVE_INFINITY)
    if (forMs <= 0) return
    const at = this.#now()
    this.#denials.set(key, { demand, answer, at, until: at + forMs })
  }
}

/** The state of a window after `elapsed` ms in which nothing was admitted. */
function later(count: Count, elapsed: number, ms: number): Count {
  const { quota, used = 0, violated, resetMs } = count
  if (elapsed >= ms) return counted(quota, 0, false, 0)
  if (elapsed < resetMs) return { ...count, resetMs: resetMs - elapsed }
  // Something has come back; how much of the rest did, nobody has told.
  return counted(quota, violated ? quota - 1 : used, false, Math.max(0, ms - elapsed))
}

function lengthOf(demand: Demand, i: number): number {
  if (demand.kind === 'windows') return demand.windows[i]?.ms ?? 0
  return Number.POSITIVE_INFINITY
}

/** Until no window is violated any more; 0 when none is: then the group was refused for another rule. */
function longestViolation({ counts }: Answer): number {
  let longest = 0
  for (const { violated, resetMs } of counts) if (violated) longest = Math.max(longest, resetMs)
  return longest
}
