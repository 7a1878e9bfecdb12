/** The storage interface: one call for all limits of a request. */

import type { Demand, Window } from '../../demand.js'
import type { OnStoreError } from '../../types.js'
import type { Reading, StoreName } from '../../verdict.js'
import type { BacklogEntry, LocalSpend } from '../fallback/backlog.js'

/** One thing to count. */
export interface Ask {
  /** Full counter key, hash tag included. */
  readonly key: string
  readonly demand: Demand
  /**
   * Asks of one group are granted together or not at all. Group 0 is the enforced verdict; each report-only rule has
   * its own.
   */
  readonly group: number
  readonly onStoreError: OnStoreError
  /** For a meter in another Cluster slot: its charge may be cancelled, and starts no block until it is confirmed. */
  readonly reserves?: boolean | undefined
  /** Requests of the rule may give tokens back when their responses have ended. */
  readonly isRefundable?: boolean | undefined
}

/** The state of one window, or of the slots. */
export type Count = Pick<Reading, 'quota' | 'used' | 'left' | 'violated' | 'resetMs' | 'windowMs' | 'credit'>

/** A slot, for the request that took it. */
export interface SlotHandle {
  /** Gives it back; safe to call twice. */
  release(): void
  /** Calls `listener`, at most once, if the slot expired and may be another's. Absent where slots cannot expire. */
  onLost?: ((listener: () => void) => void) | undefined
}

interface Counted {
  readonly store: StoreName
  /** One per window, or one for slots. */
  readonly counts: readonly Count[]
}

/** The whole group was granted. Of slots, the answer is also the handle of the one that was taken. */
export interface Granted extends Counted, Partial<SlotHandle> {
  readonly granted: true
  readonly unavailable: false
  /** When it was charged, on the store's clock, or a time shortly before. Absent if `giveBack` has nothing to undo. */
  readonly at?: number | undefined
  /** Granted in this process in place of Redis: what Redis has to be told of, or was. */
  readonly owed?: LocalSpend | undefined
  /** Of leased tokens: the number of the spend in its lease. */
  readonly spend?: number | undefined
}

/** The group is over a limit, of this ask or of another. */
export interface Refused extends Counted, NoSlot {
  readonly granted: false
  readonly unavailable: false
  /** When asking again may succeed, if that can be sooner than the resets say (lent or reserved tokens may return). */
  readonly askAgainMs?: number | undefined
  /** True if the store was not asked, because another ask of the group was refused first. */
  readonly skipped?: true | undefined
}

/** The ask could not be counted, and therefore is not granted. */
export interface Unavailable extends Counted, NoSlot {
  readonly granted: false
  readonly unavailable: true
  readonly store: 'none'
}

interface NoSlot {
  readonly release?: undefined
}

export type Answer = Granted | Refused | Unavailable

/** A cost that became known only with the upstream's response. */
export interface LateCharge {
  /** The ask as it was granted. */
  readonly ask: Ask
  /** Whole units from 1. */
  readonly units: number
}

export interface CounterStore {
  /**
   * Reads every ask, then charges each group whole or not at all; a refused group consumes nothing. Answers are in the
   * order of the asks. A promise only when the store is remote.
   */
  take(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]>
  /** True when a report-only ask may join the call that `enforced` asks make: it costs no call, and no time. */
  rides(observed: Ask, enforced: readonly Ask[]): boolean
  /** What `take` would answer now. Nothing is charged, and no slot is taken: the counters stay as they are. */
  peek(asks: readonly Ask[]): Answer[] | Promise<Answer[]>
  /**
   * Takes back what was granted, as if it had never been asked for: another store refused the request. `answers` are
   * those of `asks`. Best effort: a charge that is not given back ends with its window.
   */
  giveBack(asks: readonly Ask[], answers: readonly Answer[]): void
  /**
   * Charges what became known after the fact, whether there is room or not: meters never beyond their quota. No request
   * waits for it.
   */
  charge(charges: readonly LateCharge[]): void
  close(): Promise<void>
}

/** A refund that the store knows nothing of, because it could not be sent. */
export type UnsentRefund = (asks: readonly Ask[], answers: readonly Answer[]) => void

/** A store over the network. */
export interface RemoteStore extends CounterStore {
  /** @param unsent called with those of the asks that certainly never reached the store */
  giveBack(asks: readonly Ask[], answers: readonly Answer[], unsent?: UnsentRefund): void
  /**
   * `take` for several equal requests, whose answers are in their order; for only one if it asks for slots. Rejects
   * when the store cannot be reached.
   */
  takeMany(asks: readonly Ask[], holder: string, times: number): Promise<Answer[][]>
  /** Sends what `calls` asks for in one write. */
  together(calls: () => void): void
  /** How many slots of `key` this process holds there. */
  slotsHeld(key: string): number
  /** Frees the slots that a failed `take` may have taken, as soon as the store can be reached. */
  abandon(asks: readonly Ask[], holder: string): void
  /**
   * Charges what was admitted elsewhere, room or not, before any call that follows. Resolves to the time of the store, in
   * microseconds; rejects when it fails.
   */
  settle(backlog: readonly BacklogEntry[]): Promise<number>
  /** Confirms what reserving asks were charged. Best effort, like `giveBack`. */
  confirm(asks: readonly Ask[]): void
}

/**
 * A count whose numbers the store knows.
 *
 * @param windowMs length of the current period, where periods differ in length
 */
export function counted(
  quota: number,
  used: number,
  violated: boolean,
  resetMs: number,
  windowMs?: number,
): Count {
  return { quota, used, left: Math.max(0, quota - used), violated, resetMs, windowMs }
}

/** The count of a lifetime window: what was given to it counts as quota, and no time brings any of it back. */
export function countedWithCredit(quota: number, credit: number, used: number, violated: boolean): Count {
  return { ...counted(quota + credit, used, violated, 0), credit }
}

/** True if the window of that demand at index `place` never begins anew. */
export function isLifetimeAt(demand: Demand, place: number): boolean {
  return demand.kind === 'windows' && demand.windows[place]?.lifetime === true
}

/** True if credit may add to one of the demand's windows. */
export function takesCredit(demand: Demand): boolean {
  return demand.kind === 'windows' && demand.windows.some(({ lifetime }) => lifetime)
}

/** The state of a demand that could not be counted. */
export function uncounted({ demand }: Ask): Count[] {
  return quotasOf(demand).map(quota => ({
    quota,
    used: undefined,
    left: undefined,
    violated: false,
    resetMs: 0,
  }))
}

/** The quotas that are counted against: one per window, or that of a meter or of slots. */
export function quotasOf(demand: Demand): number[] {
  if (demand.kind === 'windows') return demand.windows.map(({ quota }) => quota)
  return [demand.kind === 'slots' ? demand.max : demand.quota]
}

/** True when a grant charges nothing, because the request's cost is known only with the response. */
export function isChargedLater(demand: Demand): boolean {
  return demand.kind === 'meter' && demand.afterAnswer !== undefined
}

/** What a request of this demand spends; a slot is one. */
export function costOf(demand: Demand): number {
  return demand.kind === 'slots' ? 1 : (demand.cost ?? 1)
}

/**
 * True when two demands count by the same windows or meter, at whatever cost. A rule's demand is one object until its
 * numbers change.
 */
export function sameQuota(one: Demand, other: Demand): boolean {
  if (one === other) return true
  if (one.kind === 'meter' && other.kind === 'meter') {
    return one.quota === other.quota && one.ms === other.ms && one.blockMs === other.blockMs
  }
  if (one.kind !== 'windows' || other.kind !== 'windows') return false
  if (one.windows.length !== other.windows.length) return false
  return (
    one.windows === other.windows ||
    one.windows.every((window, i) => isSameWindow(window, other.windows[i] as Window))
  )
}

function isSameWindow(one: Window, other: Window): boolean {
  return (
    one.name === other.name &&
    one.quota === other.quota &&
    one.ms === other.ms &&
    one.algorithm === other.algorithm &&
    one.lifetime === other.lifetime &&
    one.calendar?.unit === other.calendar?.unit &&
    one.calendar?.timezone === other.calendar?.timezone
  )
}

/**
 * Tokens that a request took before its other limits were asked come back if one of those refuses, within about this
 * time. A refusal for want of tokens may be due to them.
 */
export const RESERVED_MS = 100

/** How long a client refused by a full in-flight rule should wait: when a slot comes back is unknown. */
export const SLOT_RETRY_MS = 1000
