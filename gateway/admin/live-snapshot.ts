/** What `GET /live` and its stream send, as JSON. Times are ISO 8601 (UTC), rates are per second over the last ten. */
import type { Mode } from '../../config/words/words.js'

export interface LiveSnapshot {
  readonly at: string
  /** When counting began. */
  readonly since: string
  readonly revision: string
  readonly loaded_at: string
  /** Empty for one process. */
  readonly workers: readonly LiveWorker[]
  /** Absent where there are workers. */
  readonly process?: LiveProcess
  /** Pids of workers that did not report in time. */
  readonly missing: readonly number[]
  readonly reload: LiveReload | null
  readonly store: LiveStore
  /** The last request of the past minute that named its client in a field that is not believed. */
  readonly untrusted_forwarding: { readonly field: string; readonly from: string } | null
  /** Absent where no certificate is ordered. */
  readonly certificate?: LiveCertificate
  readonly rates: LiveRates
  /** Requests and WebSockets at the upstreams, or waiting for one. */
  readonly in_flight: number
  /** All, in the order of the files. */
  readonly rules: readonly LiveRule[]
  /** The busiest and the most refused, the busiest first. */
  readonly projects: readonly LiveProject[]
  /** Counters seen within the last minute, that of the highest share first. */
  readonly closest: readonly LiveClosest[]
  readonly slots: readonly LiveSlots[]
  readonly upstreams: readonly LiveUpstream[]
  /** What was done through this port, the newest first. */
  readonly overrides: readonly LiveOverride[]
}

/** A process that takes requests. */
export interface LiveProcess {
  readonly pid: number
  readonly started_at: string
  /** How late its event loop last ran. */
  readonly loop_delay_ms: number
  readonly rss_bytes: number
}

/** A worker. Numbers that it did not report are null. */
export interface LiveWorker {
  readonly pid: number
  readonly started_at: string
  readonly answers: boolean
  readonly loop_delay_ms: number | null
  readonly rss_bytes: number | null
}

export interface LiveReload {
  readonly at: string
  readonly result: string
  readonly problems: readonly LiveProblem[]
}

export interface LiveProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly path: string
  readonly sentence: string
}

export interface LiveStore {
  readonly kind: 'memory' | 'redis'
  /** Without credentials. */
  readonly address: string | null
  readonly state: 'ok' | 'away'
  /** When this state began. */
  readonly since: string
}

/** The certificate that the gateway orders itself. */
export interface LiveCertificate {
  readonly domains: readonly string[]
  /** Null while there is none. */
  readonly expires: string | null
  /** Why the last order failed, as a sentence; null if it did not. */
  readonly failure: string | null
}

/**
 * Rates of requests. `errors_of_ours` and `errors_of_upstreams`: responses with 500 and above, by who is to blame: an
 * upstream that could not be reached, or failed, for the 502 or 504 in its place.
 */
export interface LiveRates {
  readonly requests: number
  readonly refused: number
  readonly would_refuse: number
  readonly errors_of_ours: number
  readonly errors_of_upstreams: number
}

export interface LiveOutcomes {
  readonly allowed: number
  readonly near: number
  /** Refused: over the limit, or because it could not be counted (`onStoreError: closed`). */
  readonly limited: number
  readonly would_limit: number
  /** Neither counted nor refused. */
  readonly error: number
}

export interface LiveRule {
  readonly id: string
  readonly kind: string
  /** The mode in force. */
  readonly mode: Mode
  /** The mode in the files. */
  readonly declared_mode: Mode
  readonly src: string
  /** The methods that an endpoint rule counts, in words. */
  readonly methods?: string
  /** What it counts by; empty for access entries. */
  readonly key: readonly string[]
  /** The share that it is enforced for, if it has one. */
  readonly share?: { readonly percent: number; readonly of: 'keys' | 'projects' }
  /** True for the trial of a quota. */
  readonly trial: boolean
  readonly rates: LiveOutcomes
  /** Null for rules beyond the first 2,000 or so that have traffic. */
  readonly last_hour: LiveOutcomes | null
  /** Requests that wait for it to have room. */
  readonly waiting: number
}

export interface LiveAsked {
  readonly requests: number
  readonly refused: number
  readonly would_refuse: number
}

export interface LiveProject {
  readonly id: string
  readonly plan: string
  readonly environment: string
  readonly rates: LiveAsked
  readonly last_hour: LiveAsked
}

export interface LiveClosest {
  readonly rule: string
  readonly policy: string
  readonly project: string
  /** A keyed hash, as in the decision record. */
  readonly key: string
  /** More than the quota where a rule only reports. */
  readonly used: number
  readonly quota: number
  /** Both null for a lifetime window. */
  readonly window_ms: number | null
  readonly reset_ms: number | null
  readonly mode: Mode
  readonly at: string
}

export interface LiveSlots {
  readonly rule: string
  readonly held: number
  readonly oldest_ms: number
}

export interface LiveUpstream {
  readonly name: string
  /** Unreachable: none of its addresses can be reached; unhealthy: none is well. */
  readonly state: 'ok' | 'unhealthy' | 'unreachable'
  /** Why it is not ok, and since when; absent while it is. */
  readonly cause?: string
  readonly since?: string
  readonly addresses: readonly LiveAddress[]
}

export interface LiveAddress {
  readonly address: string
  /**
   * Ejected: left out while others serve; unreachable: it cannot be connected to, or failed several times in a row;
   * unhealthy: it fails its health checks; draining: its name no longer has it, and requests in progress end.
   */
  readonly state: 'ok' | 'ejected' | 'unreachable' | 'unhealthy' | 'draining'
  /** Why it is not ok, and since when; absent while it is. */
  readonly cause?: string
  readonly since?: string
  /** Why its name cannot be resolved anew, and since when: the address is the last that is known. */
  readonly name_fault?: { readonly cause: string; readonly since: string }
  readonly in_flight: number
  readonly web_sockets: number
}

export interface LiveOverride {
  readonly id: string
  readonly kind: 'mode' | 'access' | 'quota' | 'reset'
  readonly what: string
  readonly at: string
  readonly by: string
  readonly from: string
  readonly why: string | null
  readonly until: string | null
  readonly undo: boolean
  /** Such as `DELETE /rules/ID/mode`; null if it cannot be undone any more. */
  readonly undo_call: string | null
}

/** What `GET /live/history` sends: one point for each completed step, at most 360, the oldest first. */
export interface LiveHistory {
  readonly step_ms: number
  readonly from: string
  readonly points: readonly LivePoint[]
}

/**
 * For a rule, its outcomes; otherwise what became of requests, where `allowed` are those answered below 500 and `error`
 * those with 500 and above.
 */
export type LivePoint = Omit<LiveOutcomes, 'near'>

/** What `GET /changes` sends: what differs in effect from the policy that was in force before. */
export interface LiveChanges {
  /** Revisions. */
  readonly from: string
  readonly to: string
  /** When the change came into force. */
  readonly at: string
  readonly changes: readonly LiveChange[]
}

export interface LiveChange {
  /** Such as `Endpoint rules`. */
  readonly heading: string
  readonly change: 'added' | 'removed' | 'changed'
  readonly sentence: string
}

/** What `GET /overrides/changes` sends: what differs in effect from the files. */
export interface LiveOverridden {
  readonly revision: string
  readonly changes: readonly LiveChange[]
}
