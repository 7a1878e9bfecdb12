/** The interface between an instance that spends leased tokens and the store that lends them. */
import type { Demand } from '../../demand.js'
import { type Answer, type Count, RESERVED_MS } from '../store/store.js'

export type Windows = Extract<Demand, { kind: 'windows' }>

/** One report about a key, with a request for tokens. Times in milliseconds. */
export interface LeaseCall {
  readonly key: string
  readonly demand: Windows
  /** Requests that wait for this call; they are charged like any other. */
  readonly must: number
  /** Tokens wanted beyond those. */
  readonly ahead: number
  /** How long they may be kept. */
  readonly ttlMs: number
  /** Leased tokens that were spent since the last call: age, count, age, count, … */
  readonly spent: readonly number[]
  /** Leased tokens that are no longer needed. */
  readonly returned: number
  /** Leased tokens still in hand. Those in none of these three were lost with an answer, and count as spent now. */
  readonly held: number
}

export interface LeaseAnswer {
  /** How many of `must` were admitted. */
  readonly admitted: number
  /** Tokens lent, at most `ahead`; 0 near the quota, where each request is charged by itself. */
  readonly ahead: number
  /** The state after the call, with leased tokens counted as used. */
  readonly counts: readonly Count[]
  /** When it was charged, on the store's clock. */
  readonly at: number
}

export interface LeaseClient {
  /**
   * Undefined if the store is away or late: then nothing was lent, and whether the report arrived is unknown. A late
   * answer goes to `late`.
   */
  lease(call: LeaseCall, late?: (answer: LeaseAnswer) => void): Promise<LeaseAnswer | undefined>
  /** What `lease` would answer; nothing is charged, lent or reported. Undefined if the store is away or late. */
  peek(call: LeaseCall): Promise<LeaseAnswer | undefined>
}

/** A lease lasts 1/PARTS of the shortest window, at most 1/PARTS of the spec's longer window (60 s). */
const PARTS = 2
const LONGEST_MS = 30_000
/** The largest part of an unused quota that `lua/lease-1.lua` lends to one instance. */
const SHARE = 0.45

/** How long leased tokens may be kept, in milliseconds. */
export function leaseMs({ windows }: Windows): number {
  return Math.min(LONGEST_MS, Math.min(...windows.map(window => window.ms)) / PARTS)
}

/**
 * How much leases may withhold: the quota is never exceeded, but tokens leased to one instance cannot be spent through
 * another until the lease ends.
 */
export function leaseBound(demand: Windows): { readonly tokens: number; readonly ms: number } {
  const smallest = Math.min(...demand.windows.map(window => window.quota))
  return { tokens: Math.floor(smallest * SHARE), ms: leaseMs(demand) }
}

/** The answer to a request that waited alone for this call. */
export function answerSeen({ admitted, counts }: LeaseAnswer): Answer {
  const base = { unavailable: false, store: 'redis', counts } as const
  return admitted > 0 ? { ...base, granted: true } : { ...base, granted: false, askAgainMs: RESERVED_MS }
}
