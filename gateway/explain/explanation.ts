/** What an explanation holds: plain data, fit for JSON. */
import type { Passed, PassedRule } from '../policy/why-not.js'
import type { Environment, Mode, Plan, StoreName } from '../types.js'

export interface Explanation {
  readonly revision: string
  /** True when the numbers are a running gateway's; else they are those of a first request. */
  readonly live: boolean
  readonly request: {
    readonly method: string
    /** As it was asked for. */
    readonly target: string
    /** The normal form, which is matched and forwarded; null when the target has none. */
    readonly path: string | null
    readonly host: string
    readonly client: string
    readonly authenticated: boolean
  }
  readonly project: ExplainedProject | null
  readonly upstream: string | null
  readonly bucket: ExplainedBucket | null
  /** Of the report-only buckets; null where there are none. */
  readonly report_only_bucket: ExplainedBucket | null
  /** Every rule that matches, the bucket's first. */
  readonly rules: readonly ExplainedRule[]
  /** Rules that look at this path, but not at this request. */
  readonly passed: readonly PassedRule[]
  readonly answer: ExplainedAnswer
}

export interface ExplainedProject {
  readonly id: string
  readonly plan: Plan
  readonly environment: Environment
  /** The identifier that found it; `given` when only the question names it, `nobody` for one that is not configured. */
  readonly by: string
  /** The identifiers in their order, with what each found; those behind the first that did are not asked. */
  readonly asked: readonly { readonly identifier: string; readonly found: string | null }[]
}

export interface ExplainedBucket {
  /** Both null when no bucket takes the request: then no project limit counts it. */
  readonly name: string | null
  readonly pattern: string | null
  /** The others that look at this path, and why they did not get the request. */
  readonly passed: readonly Passed[]
}

export interface ExplainedRule {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  /** `file:line`. */
  readonly src: string
  readonly pattern: string
  /** `when`: its conditions leave the request out. `key`: a part of its key is absent. */
  readonly skipped: 'when' | 'key' | null
  readonly key: readonly { readonly part: string; readonly value: string | null }[]
  readonly result: 'allowed' | 'limited' | 'unavailable' | null
  /** Who counted. */
  readonly store: StoreName | null
  readonly counters: readonly ExplainedCounter[]
}

export interface ExplainedCounter {
  readonly policy: string
  readonly q: number
  /** Null for slots. */
  readonly w_ms: number | null
  /** This request included where it would be admitted. Null when nobody counted. */
  readonly used: number | null
  /** What was asked for, of which `used` was spent or held: more where a rule counts what it refuses, or only reports. */
  readonly attempted: number | null
  readonly left: number | null
  /** Until more comes back; of a refused request until it could pass. */
  readonly t_ms: number
  readonly violated: boolean
}

export interface ExplainedAnswer {
  /** Null when it is the upstream's to say. */
  readonly status: number | null
  /** Null when it is no refusal. */
  readonly code: string | null
  readonly detail: string | null
  /** Enforced rules that refuse it. */
  readonly refused_by: readonly string[]
  /** Report-only rules that would refuse it. */
  readonly would_be_refused_by: readonly string[]
  /** Fields the gateway adds to the answer. */
  readonly fields: readonly (readonly [string, string])[]
}
