/** What `GET /live` and its stream send, as JSON. Times are ISO 8601 (UTC), rates are per second over the last ten. */
import type { Mode } from '../../config/words.js'

export interface LiveSnapshot {
  readonly at: string
  /** When counting began. */
  readonly since: string
  readonly revision: string
  readonly loaded_at: string
  /** Empty for one process. */
  readonly workers: readonly LiveWorker[]
  readonly process?: LiveProcess
  /** Workers that did not tell theirs. */
  readonly missing: readonly number[]
  readonly reload: LiveReload | null
  readonly store: LiveStore
  readonly rates: LiveRates
  readonly in_flight: number
  readonly rules: readonly LiveRule[]
  readonly projects: readonly LiveProject[]
  readonly closest: readonly LiveClosest[]
  readonly slots: readonly LiveSlots[]
  readonly upstreams: readonly LiveUpstream[]
  readonly acts: readonly LiveAct[]
}

export interface LiveWorker {
  readonly pid: number
  readonly started_at: string
  readonly answers: boolean
  readonly loop_delay_ms: number
}

export interface LiveProcess {
  readonly pid: number
  readonly started_at: string
  readonly loop_delay_ms: number
  readonly rss_bytes: number
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
  readonly address: string | null
  readonly state: 'ok' | 'away'
  readonly since: string
}

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
  readonly limited: number
  readonly would_limit: number
  readonly error: number
}

export interface LiveRule {
  readonly id: string
  readonly kind: string
  readonly mode: Mode
  readonly declared_mode: Mode
  readonly src: string
  readonly key: readonly string[]
  readonly share?: { readonly percent: number; readonly of: string }
  readonly trial: boolean
  readonly rates: LiveOutcomes
  readonly last_hour: LiveOutcomes
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
  readonly used: number
  readonly quota: number
  /** Null for slots. */
  readonly window_ms: number | null
  readonly reset_ms: number
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
  readonly addresses: readonly {
    readonly address: string
    readonly state: 'ok' | 'ejected'
    readonly in_flight: number
  }[]
}

export interface LiveAct {
  readonly id: string
  readonly kind: 'mode' | 'access' | 'reset'
  readonly what: string
  readonly at: string
  readonly by: string
  readonly from: string
  readonly until: string | null
  readonly undo: boolean
  /** Such as `DELETE /rules/ID/mode`; null for what cannot be undone any more. */
  readonly undo_call: string | null
}

/** What `GET /live/history` sends: one point for each step, the oldest first. */
export interface LiveHistory {
  readonly step_ms: number
  readonly from: string
  readonly points: readonly LivePoint[]
}

export type LivePoint = Omit<LiveOutcomes, 'near'>
