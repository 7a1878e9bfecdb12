/**
 * Redis's last answer about each key, so that counting in its place begins where Redis left off: a late call or an
 * outage adds at most this instance's share of what was left, never a fresh quota.
 */
import type { Demand, Window } from '../../demand.js'
import { BoundedMap, useOf } from '../store/bounded-map.js'
import { type Answer, type Ask, type Count, uncounted } from '../store/store.js'

/** The counts of Redis's last answer, one for each window that is asked about. Times in milliseconds. */
export interface LastAnswer {
  /** Without `used` for a window that Redis was not asked about. */
  readonly counts: readonly Count[]
  /** Time since that answer. */
  readonly elapsedMs: number
}

interface Known {
  readonly demand: Demand
  readonly counts: readonly Count[]
  readonly at: number
}

const MOST_KEYS = 100_000

export class LastAnswers {
  readonly #now: () => number
  readonly #known = new BoundedMap<Known>(MOST_KEYS)

  /** `now` in milliseconds, from any origin. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Remembers Redis's answers to these asks. */
  remember(asks: readonly Ask[], answers: readonly Answer[]): void {
    const at = this.#now()
    for (let i = 0; i < asks.length; i += 1) {
      const { key, demand } = asks[i] as Ask
      const { store, counts } = answers[i] as Answer
      if (demand.kind === 'slots' || store === 'none') continue
      const uses = counts.map(({ quota, used = 0 }) => useOf(used, quota))
      this.#known.set(key, { demand, counts, at }, uses.includes('most') ? 'most' : 'little')
    }
  }

  /** The last answer about the key, if any. A quota may have changed since then: windows are found by their names. */
  recall(ask: Ask): LastAnswer | undefined {
    const known = this.#known.get(ask.key)
    if (known === undefined) return undefined
    const counts = countsFor(ask, known)
    return counts && { counts, elapsedMs: this.#now() - known.at }
  }

  forget(key: string): void {
    this.#known.delete(key)
  }
}

function countsFor(ask: Ask, { demand: before, counts }: Known): readonly Count[] | undefined {
  const { demand } = ask
  if (before.kind !== demand.kind) return undefined
  if (before.kind !== 'windows' || demand.kind !== 'windows' || before.windows === demand.windows)
    return counts
  const unknown = uncounted(ask)
  return demand.windows.map((window, i) => {
    const found = before.windows.findIndex(one => isSameWindow(one, window))
    return counts[found] ?? (unknown[i] as Count)
  })
}

/** Of the windows of one key, this is the same, perhaps with other numbers. */
const isSameWindow = (one: Window, other: Window): boolean =>
  one.name === other.name && one.calendar?.unit === other.calendar?.unit && one.lifetime === other.lifetime
