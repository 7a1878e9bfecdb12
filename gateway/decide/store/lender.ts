/** The interface between an instance that spends leased tokens and the store that lends them. */
import type { Demand } from '../../types.js'
import type { Count } from './store.js'

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
  /** Leased tokens that nobody needs any more. */
  readonly returned: number
  /** Leased tokens still in hand. What is in neither of the three was lost with an answer, and counts as spent now. */
  readonly held: number
}

export interface LeaseAnswer {
  /** Of `must`. */
  readonly admitted: number
  /** Of `ahead`; 0 near the quota, where tokens are taken one at a time. */
  readonly ahead: number
  /** After the call, leased tokens counted as used. */
  readonly counts: readonly Count[]
  /** On refusal, until tokens lent to others may come back. */
  readonly askAgainMs: number | undefined
  /** When it was charged, on the store's clock. */
  readonly at: number
}

export interface Lender {
  /**
   * Undefined when the store is away or late: then nothing was lent, and nobody knows what became of the report. What comes
   * too late goes to `late`.
   */
  lease(call: LeaseCall, late?: (answer: LeaseAnswer) => void): Promise<LeaseAnswer | undefined>
}

/** A lease lasts this part of the shortest window, but no longer than that of the spec's longer one. */
const PARTS = 2
const LONGEST_MS = 30_000
/** What `lua/lease-1.lua` lends one instance of a quota that nobody uses, at most. */
const SHARE = 0.45

/** How long leased tokens may be kept, in milliseconds. */
export function leaseMs({ windows }: Windows): number {
  return Math.min(LONGEST_MS, Math.min(...windows.map(window => window.ms)) / PARTS)
}

/**
 * What leases may withhold: never is more admitted than the quota, but tokens in one instance's hand cannot be spent
 * through another until the lease ends.
 */
export function leaseBound(demand: Windows): { readonly tokens: number; readonly ms: number } {
  const smallest = Math.min(...demand.windows.map(window => window.quota))
  return { tokens: Math.floor(smallest * SHARE), ms: leaseMs(demand) }
}
