/** The records of a request, one log line each. People replay them for years: a field is added, never changed. */

import type { Calendar } from '../demand.js'
import type { CredentialCheck, Mode } from '../types.js'
import type { AnswerSource, Outcome, StoreName } from '../verdict.js'

export type Decision = 'allow' | 'deny' | 'would_deny' | 'error_open' | 'error_closed'

/** Enough to decide the request again under another policy. Unknown values are null. */
export interface DecisionRecord {
  readonly v: 1
  /** When the request arrived, ISO 8601. */
  readonly ts: string
  readonly id: string
  readonly client_request_id: string | null
  readonly traceparent: string | null
  readonly decision: Decision
  readonly mode: Mode
  /** The admin API path by which the mode was set; absent for a mode from the files. */
  readonly mode_src?: string
  /** Null when no enforced rule applied; so are kind, src, route and key. */
  readonly rule: string | null
  readonly kind: string | null
  /** Percentage of the rule's keys for which it is enforced, where that is a share. */
  readonly enforce_for?: number
  readonly rev: string
  readonly src: string | null
  readonly upstream: string
  readonly project: string | null
  readonly host?: string
  readonly plan: string | null
  readonly environment: string | null
  readonly method: string
  readonly route: string | null
  /** Parts that may be personal are hashed: see Redactor. */
  readonly path: string
  /** Keyed hash of the counter's key. */
  readonly key: string | null
  readonly ip: string
  /** Keyed hash of the network the client is counted by: distinguishes clients that share one `ip`. */
  readonly client: string
  readonly ja3: string | null
  readonly ja4: string | null
  readonly auth: 'authenticated' | 'anonymous'
  /** True when an identifier has checked the credential. */
  readonly verified: boolean
  readonly credential: CredentialCheck | null
  /** What was wrong with the credential, in a word or two; absent if nothing was. */
  readonly credential_fault?: string
  /** The identifier that found the project, or else the one that looked at the credential. */
  readonly identifier: string | null
  readonly upgrade: boolean
  readonly preflight: boolean
  /** Keyed hashes of other parts of keys, by part: `header:NAME`, `email-or-flow` and `json-rpc`. */
  readonly parts: Readonly<Record<string, string>>
  readonly counters: readonly Counter[]
  /** The report-only rules that were asked as well; empty in their own records. */
  readonly beside: readonly Beside[]
  /** Of a WebSocket, by rule that counts messages; in records of a refused message its own rule alone. */
  readonly messages?: readonly Messages[]
  /** Status the rule demands; null when it lets the request pass. */
  readonly would_status: number | null
  /** Status the client received; 0 when it disconnected before one was sent. */
  readonly sent_status: number
  readonly store: StoreName
  readonly limiter_us: number
  /** How long the request waited for its rules to have room, which is no part of `limiter_us`; absent if it did not. */
  readonly waited_ms?: number
  /** From the request's head to the end of its response; without `waited_ms` that is how long it held its slots. */
  readonly duration_ms: number
  /** Share of such decisions that are logged: 1 for all but sampled ones. */
  readonly sample: number
}

/** What became of the messages of a WebSocket under one rule. */
export interface Messages {
  readonly rule: string
  readonly mode: Mode
  readonly admitted: number
  /** In report-only mode those that would have been. */
  readonly refused: number
}

/** A reading of one window, or of the slots. */
export interface Counter {
  readonly policy: string
  /** The quota. */
  readonly q: number
  readonly used: number | null
  /** Milliseconds until it resets; null for a lifetime window. */
  readonly t_ms: number | null
  /** Length of the window; null for slots and lifetime windows. */
  readonly w_ms: number | null
  /** The name of a window other than burst and sustained. */
  readonly window?: string
  /** Unit and time zone of a calendar period. */
  readonly calendar?: Calendar
  /** Set for a window that never begins anew. */
  readonly lifetime?: boolean
  /** Of a lifetime window: how much of its quota was given as credit. */
  readonly credit?: number | null
  /** What the request costs if not 1; 0 when the cost depends on the response. */
  readonly cost?: number
}

/** The outcome of a report-only rule for a request. */
export interface Beside {
  readonly rule: string
  readonly kind: string
  /** The admin API path by which the mode was set; absent for a mode from the files. */
  readonly mode_src?: string
  /** Percentage of the rule's keys for which it is enforced, where that is a share. */
  readonly enforce_for?: number
  readonly result: Outcome['result']
  readonly key: string
  readonly counters: readonly Counter[]
}

/** Unknown values are null. */
export interface AccessRecord {
  readonly v: 1
  /** When the request arrived, ISO 8601. */
  readonly ts: string
  readonly id: string
  readonly client_request_id: string | null
  readonly traceparent: string | null
  readonly method: string | null
  /** Parts that may be personal are hashed: see Redactor. */
  readonly path: string | null
  readonly project: string | null
  readonly credential: CredentialCheck | null
  /** What was wrong with the credential, in a word or two; absent if nothing was. */
  readonly credential_fault?: string
  /** The identifier that found the project, or else the one that looked at the credential. */
  readonly identifier: string | null
  readonly ip: string | null
  /** Status the client received; 0 when it disconnected before the response began. */
  readonly status: number
  readonly source: AnswerSource
  readonly error: string | null
  readonly cause: string | null
  readonly upstream: string
  readonly address: string | null
  readonly bytes_in: number
  readonly bytes_out: number
  /** Of a WebSocket, by rule that counts messages. */
  readonly messages?: readonly Messages[]
  readonly duration_ms: number
  /** Until the upstream's response began. */
  readonly upstream_ms: number | null
  readonly limiter_us: number
  /** How long the request waited for its rules to have room, which is no part of `limiter_us`; absent if it did not. */
  readonly waited_ms?: number
}
