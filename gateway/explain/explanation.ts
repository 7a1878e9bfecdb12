/** An explanation of a request, as plain data: the answer to `POST /explain`, and what `sluice explain` prints. */

import type { Calendar } from '../demand.js'
import type { AccessAction, Condition, CredentialCheck, KeyPart, Mode, Project, Share } from '../types.js'
import type { Outcome, StoreName } from '../verdict.js'

/** Plain data, fit for JSON. */
export interface Explanation {
  readonly revision: string
  /** True when the numbers are a running gateway's; else they are those of a first request. */
  readonly live: boolean
  readonly request: ExplainedRequest
  /** How the caller was looked for; null for a request to the gateway itself. */
  readonly caller: ExplainedCaller | null
  readonly project: ExplainedProject | null
  /** Null if nothing is forwarded. */
  readonly upstream: string | null
  /** Path and query that the upstream gets; null if nothing is forwarded. */
  readonly forwarded: string | null
  /** Entries that deny or exempt it, the enforced one first. */
  readonly access: readonly ExplainedAccess[]
  readonly bucket: ExplainedBucket | null
  /** Null where there are no report-only buckets. */
  readonly report_only_bucket: ExplainedBucket | null
  /** Every rule that matches, the bucket's first. */
  readonly rules: readonly ExplainedRule[]
  /** Rules that look at this path, but not at this request. */
  readonly passed: readonly PassedRule[]
  readonly answer: ExplainedAnswer
}

export interface ExplainedRequest {
  readonly method: string
  readonly target: string
  /** The normal form, which is matched and counted; null when the target has none. */
  readonly path: string | null
  /** True if `closed` in gateway.yaml names it: it gets 404, whatever routes say. */
  readonly closed: boolean
  /** True for `quotaPath` of gateway.yaml: the gateway answers it with the caller's own windows. */
  readonly quota_path: boolean
  readonly host: string
  readonly client: string
  readonly authenticated: boolean
  /** What makes it so, such as `header authorization`; null without, or if an identifier has checked one. */
  readonly credential: string | null
}

export interface ExplainedProject extends Pick<Project, 'id' | 'plan' | 'environment' | 'verified'> {
  /** The identifier that found it; `given` if only the question names it, `nobody` if neither did. */
  readonly by: string
}

export interface ExplainedCaller {
  /** What the route requires; null where a credential is optional. */
  readonly requires: { readonly scopes: readonly string[] } | null
  /** What the check of its credential said. */
  readonly credential: CredentialCheck
  /** The identifiers in their order, with what each found; those after the first that found a project are not asked. */
  readonly asked: readonly AskedIdentifierResult[]
}

export interface AskedIdentifierResult {
  readonly identifier: string
  /** The id of a project; null if it knows none. */
  readonly found: string | null
  /** Why a credential does not count: what is wrong with it, or that it could not be checked. */
  readonly fault: string | null
}

export interface ExplainedAccess {
  readonly entry: string
  readonly action: AccessAction
  readonly mode: Mode
  /** Of a mode that the admin port has set: what the file says, and the path that set it. */
  readonly declared_mode?: Mode
  readonly mode_src?: string
  /** What of the entry the request is in: a project, or a network. */
  readonly project?: string
  readonly network?: string
  readonly src: string
  /** Set for entries of the admin port. */
  readonly why: string | null
  readonly set_by: string | null
  /** ISO 8601. */
  readonly until: string | null
}

/** The bucket that takes the request. */
export interface ExplainedBucket {
  /** Null when no bucket does: then no project limit counts it. */
  readonly name: string | null
  readonly pattern: string | null
  /** Buckets with a pattern that matches, and why they do not take it. */
  readonly passed: readonly PassedBucket[]
}

export interface PassedBucket {
  readonly bucket: string
  readonly pattern: string
  /** `no-quota`: the bucket is not in the table that counts for this project. */
  readonly why: 'method' | 'less-specific' | 'no-quota'
}

export interface PassedRule {
  readonly rule: string
  readonly pattern: string
  /** `read`: GET, HEAD and OPTIONS are exempt. `when`: it looks at other requests. */
  readonly why: 'method' | 'read' | 'when'
  /** The condition of `when` that does not hold; null if `when` is not the reason. */
  readonly unmet: Condition['on'] | null
}

export interface ExplainedRule {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  /** Of a mode that the admin port has set: what the file says, and the path that set it. */
  readonly declared_mode?: Mode
  readonly mode_src?: string
  /** The share that it is enforced for, and whether this request is inside it, if that is known; null without a share. */
  readonly share: (Share & { readonly inside: boolean | null }) | null
  readonly src: string
  /** Of a quota that the admin port has set for this project. */
  readonly negotiated?: ExplainedNegotiation
  readonly pattern: string
  /** The methods that the rule counts, in words; null for a bucket, whose pattern says it. */
  readonly methods: string | null
  /**
   * `unlimited`: the rule counts nothing. `when`: its conditions leave the request out. `key`: a part of its key is
   * absent.
   */
  readonly skipped: 'unlimited' | 'when' | 'key' | 'messages' | null
  readonly key: readonly { readonly part: KeyPart; readonly value: string | null }[]
  readonly result: Outcome['result'] | null
  /** The store that counted. */
  readonly store: StoreName | null
  readonly counters: readonly ExplainedCounter[]
}

export interface ExplainedNegotiation {
  readonly why: string
  readonly set_by: string
  /** As it was given: a day or a moment. */
  readonly until: string | null
}

export interface ExplainedCounter {
  readonly policy: string
  readonly q: number
  /** Length of the window; null for slots and lifetime windows. */
  readonly w_ms: number | null
  /** Only for calendar windows: their periods. */
  readonly calendar?: Calendar
  /** Set for a window that never begins anew. */
  readonly lifetime?: boolean
  /** Only for lifetime windows: how much of the quota was given as credit; null when no store counted. */
  readonly credit?: number | null
  /** Includes this request if it would be admitted. Null when no store counted. */
  readonly used: number | null
  /** `used` without the quota as upper bound: more than it if a rule counts what it refuses, or only reports. */
  readonly attempted: number | null
  readonly left: number | null
  /** Until more comes back; if the request is refused, until it could pass. Null for a lifetime window. */
  readonly t_ms: number | null
  readonly violated: boolean
  /** What the request costs, if that is more than one. */
  readonly cost?: number
  /** That is only reserved: its response says what it has cost. */
  readonly reserved?: true
}

export interface ExplainedAnswer {
  /** Null if the upstream decides it. */
  readonly status: number | null
  /** Null unless it is a refusal. */
  readonly code: string | null
  readonly detail: string | null
  /** Enforced rules that refuse it. */
  readonly refused_by: readonly string[]
  /** Report-only rules that would refuse it. */
  readonly would_be_refused_by: readonly string[]
  /** How long a refused request would wait for room before, and when there is some; null if it is refused at once. */
  readonly wait: { readonly up_to_ms: number; readonly room_in_ms: number | null } | null
  /** Fields the gateway adds to the answer. */
  readonly fields: readonly (readonly [string, string])[]
}
