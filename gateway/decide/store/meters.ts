/**
 * Meters in this process: a window begins with a key's first request and ends as a whole, and the request that passes
 * the quota may block the key for longer. `lua/meter.lua` does the same in Redis, and both run the same tests.
 */
import type { MeterDemand } from '../../demand.js'
import { isReportOnlyKey } from '../key.js'
import { wholeMicroseconds } from '../windows/algorithm.js'
import { BoundedMap, type Use, useOf } from './bounded-map.js'
import { type Count, costOf, counted } from './store.js'

/** A window: what was spent in it, the first refused request included, and when it begins and ends. */
export interface Meter {
  readonly used: number
  readonly begin: number
  readonly end: number
}

/** Bounds memory under a flood of keys: see `BoundedMap`. */
export const MOST_KEYS = 200_000

export class Meters {
  #enforced = new BoundedMap<Meter>(MOST_KEYS)
  /** Keys of report-only rules, kept apart so that they never push out those of enforced ones. */
  #observed = new BoundedMap<Meter>(MOST_KEYS)

  /** The window of `key` as of `now`; an edited limit applies at once, also to windows and blocks that have begun. */
  read(key: string, demand: MeterDemand, now: number): Meter {
    const kept = this.#running(key, now)
    const fresh = freshAt(now, demand)
    if (kept === undefined) return fresh
    const latest = isOver(kept, demand) ? now + Math.max(demand.ms, demand.blockMs) : kept.begin + demand.ms
    if (latest <= now) return fresh
    return latest < kept.end ? { ...kept, end: latest } : kept
  }

  /** Charges one request; returns the window after it. */
  charge(key: string, meter: Meter, demand: MeterDemand): Meter {
    if (demand.afterAnswer !== undefined) return meter
    const charged = { ...meter, used: meter.used + costOf(demand) }
    this.#of(key).set(key, charged, useIn(charged, demand))
    return charged
  }

  /**
   * Charges a cost that became known with the response, at most up to the quota: then the next request is refused and
   * begins the block. The limit may have been edited since the request began, so its length ends no window.
   */
  chargeLate(key: string, demand: MeterDemand, units: number, now: number): void {
    const meter = this.#running(key, now) ?? freshAt(now, demand)
    const used = Math.max(meter.used, Math.min(demand.quota, meter.used + units))
    const charged = { ...meter, used }
    if (used > 0) this.#of(key).set(key, charged, useIn(charged, demand))
  }

  /** Notes a refusal: the first one in a window counts and begins the block. Returns the window after it. */
  refuse(key: string, meter: Meter, demand: MeterDemand, now: number): Meter {
    const refused = refusedBy(meter, demand, now)
    const kept = this.#of(key)
    // An edited limit may have moved the end.
    if (kept.get(key) !== refused) kept.set(key, refused, 'blocked')
    return refused
  }

  /** Takes back what was charged at `at`, unless that window has ended. */
  giveBack(key: string, demand: MeterDemand, at: number, now: number): void {
    const kept = this.#running(key, now)
    if (kept === undefined || kept.begin > at) return
    // Without this charge the quota was not passed, so the refusal that was counted is undone, too, with its block.
    const used = Math.max(0, Math.min(kept.used, demand.quota) - costOf(demand))
    const left = { ...kept, used }
    this.#of(key).set(key, left, useIn(left, demand))
  }

  delete(key: string): void {
    this.#of(key).delete(key)
  }

  clear(): void {
    this.#enforced = new BoundedMap(MOST_KEYS)
    this.#observed = new BoundedMap(MOST_KEYS)
  }

  #running(key: string, now: number): Meter | undefined {
    const kept = this.#of(key).get(key)
    return kept !== undefined && kept.end > now ? kept : undefined
  }

  #of(key: string): BoundedMap<Meter> {
    return isReportOnlyKey(key) ? this.#observed : this.#enforced
  }
}

function freshAt(now: number, { ms }: MeterDemand): Meter {
  return { used: 0, begin: now, end: now + ms }
}

/** What a granted ask is charged at once: 0 if its cost is known only with the response. */
export function chargeOf(demand: MeterDemand): number {
  return demand.afterAnswer === undefined ? costOf(demand) : 0
}

/** True when the request does not fit into what is left. */
export function isFull({ used }: Meter, demand: MeterDemand): boolean {
  return used + costOf(demand) > demand.quota
}

/** The window after a request that did not fit: only the first of them changes it. */
export function refusedBy(meter: Meter, demand: MeterDemand, now: number): Meter {
  if (isOver(meter, demand)) return meter
  const end = Math.max(meter.end, now + demand.blockMs)
  return { ...meter, used: meter.used + costOf(demand), end }
}

/** The window's state, as reported in an answer. */
export function countOf(meter: Meter, { quota }: MeterDemand, violated: boolean, now: number): Count {
  return counted(quota, meter.used, violated, wholeMicroseconds(meter.end - now))
}

function isOver({ used }: Meter, { quota }: MeterDemand): boolean {
  return used > quota
}

function useIn(meter: Meter, demand: MeterDemand): Use {
  return isOver(meter, demand) ? 'blocked' : useOf(meter.used, demand.quota)
}
