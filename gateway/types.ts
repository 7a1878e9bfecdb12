/** The shapes that the rooms hand each other. Types only: every room may import this file. */

import type {
  AccessAction,
  Algorithm,
  CalendarUnit,
  Environment,
  KeyPart,
  Missing,
  Mode,
  OnStoreError,
  Plan,
} from '../config/words.js'

export type { AccessAction, Algorithm, Environment, KeyPart, Missing, Mode, OnStoreError, Plan }

/** What is known of a request before its body. Plain data: no socket, no response. */
export interface Facts {
  /** Request id, also sent to the upstream as `x-sluice-request-id`. */
  readonly id: string
  readonly method: string
  /** Normal form of the path: what is matched is what is forwarded. */
  readonly path: string
  /** `path` in lowercase, where the upstream takes either case for the same: matched, counted and logged in its place. */
  readonly foldedPath?: string | undefined
  /** Raw query with its `?`, or ''. */
  readonly query: string
  /** Authority of the request, lower-cased, without the port. */
  readonly host: string
  /** Client address behind trusted hops; IPv4-mapped addresses are folded to IPv4. */
  readonly client: string
  /** What `client` is counted by: the IPv4 address, or the IPv6 /64. */
  readonly network: string
  /** True when the TCP peer is a trusted proxy, so its identity headers count. */
  readonly trusted: boolean
  /** True when the request asks for a WebSocket. */
  readonly upgrade?: boolean | undefined
  /** True for a CORS preflight. */
  readonly preflight?: boolean | undefined
  /** TLS fingerprints: from a trusted hop, or of the TLS that ends here. */
  readonly ja3?: string | undefined
  readonly ja4?: string | undefined
  /** True when the request carries a credential, good or made up: what counts as one is a setting; or one was checked. */
  readonly authenticated: boolean
  /** A header's value by lower-case name; repeated headers are joined with `, `. */
  header(name: string): string | undefined
}

export interface Project {
  readonly id: string
  readonly plan: Plan
  readonly environment: Environment
  /** True when it was found by a credential that its identifier has checked. */
  readonly verified?: boolean | undefined
  /** What entries and conditions call it where its id does not say it: an unknown host that is counted with others. */
  readonly alias?: string | undefined
}

/** Where in the policy files something was written; of what the admin port was told its path, and no line. */
export interface Source {
  readonly file: string
  readonly line: number | undefined
}

/** `enforceFor`: a rule in force for so many per cent of its keys, or of the projects, and report-only for the others. */
export interface Share {
  readonly percent: number
  readonly of: 'keys' | 'projects'
}

/** One thing to check. `config` belongs to the limit plugin named by `kind`. */
export interface Rule<Config = unknown> {
  /** Stable name: counters are keyed by it, so editing a rule neither refills nor resets another. */
  readonly id: string
  readonly kind: string
  /** The one that holds now. */
  readonly mode: Mode
  /** Where the admin port has set the mode: what the files say instead, and the path of that act. */
  readonly forNow?: { readonly declared: Mode; readonly src: string } | undefined
  readonly key: readonly KeyPart[]
  readonly missing: Missing
  readonly onStoreError: OnStoreError
  /** Absent where the rule is in force for all, or for nobody. */
  readonly share?: Share | undefined
  readonly config: Config
  readonly source: Source
  /** What metrics call it, where its id does not stand in the files: they bound the number of series. */
  readonly series?: string | undefined
  /** Of the requests that its patterns match it looks only at those for which all of these hold. */
  readonly when?: readonly Condition[] | undefined
  /** True when it looks at GET, HEAD and OPTIONS too. */
  readonly reads?: boolean | undefined
}

/** One thing that a rule's `when` asks for. */
export interface Condition {
  readonly on: 'authenticated' | 'projects' | 'plans' | 'environments' | 'networks'
  holds(facts: Facts, project: Project): boolean
}

/** What the matcher found for one request: the pattern's text is the bounded `route` of logs. */
export interface Matched {
  readonly rule: Rule
  readonly route: string
}

/** One question to a limiter: may `key` spend under `rule`? */
export interface Check<Config = unknown> {
  readonly rule: Rule<Config>
  readonly key: string
  /** The pattern of the rule that the request matches. */
  readonly route: string
  readonly facts: Facts
}

/** Periods of the calendar: they begin and end by the clock of a time zone, summer time and all. */
export interface Calendar {
  readonly unit: CalendarUnit
  /** Of the IANA time zone database. */
  readonly timezone: string
}

/** A length of time with a quota. */
export interface Window {
  /** Such as `burst` or `sustained`; the policy's name in answers is `<rule>.<window>`. */
  readonly name: string
  readonly quota: number
  /** Its length; of a window of the calendar at least that of its longest period. */
  readonly ms: number
  /** Of a rolling window; one of the calendar counts by its periods. */
  readonly algorithm: Algorithm
  readonly calendar?: Calendar | undefined
}

/** What a limiter wants counted. All demands of a request are taken together, or none. */
export type Demand =
  | {
      readonly kind: 'windows'
      readonly windows: readonly Window[]
      /** An instance may take tokens ahead and spend them by itself. */
      readonly lease: boolean
      /** What this request spends in each window; a whole number, 1 when left out. */
      readonly cost?: number | undefined
    }
  | {
      readonly kind: 'slots'
      readonly max: number
      readonly ttlMs: number
      /** The slot goes back after this long even if its request lives. Absent: only with the request. */
      readonly maxHoldMs?: number | undefined
      /** What an upgrade holds it for. Absent: its handshake. */
      readonly count?: 'handshake' | 'lifetime' | undefined
    }
  | MeterDemand

/**
 * A window that begins with a key's first request and ends whole; the request that passes its quota may block the key for
 * longer. Only admitted requests are counted, and the first that is refused.
 */
export interface MeterDemand {
  readonly kind: 'meter'
  /** What one key may spend in the window. */
  readonly quota: number
  /** Length of the window in milliseconds. */
  readonly ms: number
  /** A key that passes its quota is refused for at least so many milliseconds; 0 means until its window ends. */
  readonly blockMs: number
  /** What this request spends; a whole number, 1 when left out. */
  readonly cost?: number | undefined
  /**
   * What this request spends is told by the upstream's answer, in units from 0 to 1,000,000,000. The request is let pass
   * while one unit is left, and charged when the answer has begun, at most up to the quota.
   */
  readonly afterAnswer?: ((answer: UpstreamAnswer) => number) | undefined
  /** True when clients must not learn the numbers: a refusal then speaks of abnormal usage. */
  readonly hidden?: boolean | undefined
}

/** The fields of an upstream's answer: values by lower-case name. */
export interface AnswerFields {
  get(name: string): string | undefined
}

/** The head of an upstream's answer. */
export interface UpstreamAnswer {
  /** 0 when the client left before there was one. */
  readonly status: number
  /** A header's value by lower-case name; repeated headers are joined with `, `. */
  header(name: string): string | undefined
}

/** Who answered: Redis, this process from tokens Redis lent it, by choice or in Redis's stead, or nobody. */
export type StoreName = 'redis' | 'lease' | 'memory' | 'local' | 'none'

/** One policy's state after the decision. */
export interface Reading {
  /** Name in answers: `<bucket>.burst`, or the rule's id for slots. */
  readonly policy: string
  /** Counted against: the whole quota, or this instance's share of it while Redis is away. */
  readonly quota: number
  /** Window length in ms, of the calendar that of the present period; absent for slots, which count concurrent requests. */
  readonly windowMs?: number | undefined
  /** Whose periods they are, where the window is one of the calendar. */
  readonly calendar?: Calendar | undefined
  /** Spent, this request included when it was admitted. Absent when nobody could count. */
  readonly used: number | undefined
  /** What is left of that quota. */
  readonly left: number | undefined
  /** What the request spends, where that is not 1: 0 where its answer will tell. */
  readonly cost?: number | undefined
  /** Until more quota comes back; on refusal until this request could pass. */
  readonly resetMs: number
  readonly violated: boolean
  /** Its numbers stand in decision records only: a client that learnt them could stay just below. */
  readonly hidden?: boolean | undefined
}

/** A rule's answer. */
export interface Outcome {
  readonly rule: Rule
  readonly route: string
  /** The key that was counted by; hashed before it reaches a log. */
  readonly key: string
  readonly result: 'allowed' | 'limited' | 'unavailable'
  readonly store: StoreName
  readonly readings: readonly Reading[]
}

/** What every rule said of a request. */
export interface Judgement {
  readonly allowed: boolean
  readonly outcomes: readonly Outcome[]
  readonly reportOnly: readonly Outcome[]
}

/** The request's answer. Report-only outcomes stand apart and never make `allowed` false. */
export interface Verdict extends Judgement {
  /** Resolves when every report-only rule has been counted; absent when that is so already. Never rejects. */
  readonly settled: Promise<void> | undefined
  /** True when its enforced bucket has no limit: then nobody tells the client of one, the upstream included. */
  readonly unlimited?: boolean | undefined
  /** True while the request holds a slot of an enforced in-flight rule. */
  readonly holdsSlot: boolean
  /** The upstream has answered, or never will: charges what only its answer tells. Nobody waits for that. */
  answered(status: number, fields: AnswerFields): void
  /** The upgrade was accepted: gives back the slots that count only its handshake. */
  upgraded(): void
  /** Gives back every slot; safe to call more than once. */
  release(): void
}

/** Who sent the answer the client saw. */
export type AnswerSource = 'upstream' | 'gateway'

/** What an observer hears about a finished request. */
export interface Finished {
  /** Request id, as the answer had it in `X-Request-Id`. */
  readonly id: string
  readonly method: string
  /** Absent when the request was too malformed to have any. */
  readonly facts: Facts | undefined
  readonly project: Project | undefined
  readonly upstream: string
  /** The upstream's address that was asked last; '' when none was. */
  readonly address: string
  readonly verdict: Judgement | undefined
  /** Revision of the policy the request was judged by. */
  readonly revision: string
  /** Status sent to the client; 0 when it left before one was sent. */
  readonly status: number
  readonly source: AnswerSource
  /** Code of our own refusal or error, or `answer-cut` when the upstream's answer broke off; absent otherwise. */
  readonly error?: string | undefined
  /** What lies behind `error`, in words for the log. */
  readonly cause?: string | undefined
  /** Bytes of the request's body that came, and of the answer's that were written; of a WebSocket all that passed. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** Wall-clock start, ms since the epoch. */
  readonly startedAt: number
  readonly durationMs: number
  /** Until the head of the upstream's answer, or until it was given up; undefined when it was not asked. */
  readonly upstreamMs: number | undefined
  /** Time spent on the decision, in microseconds. */
  readonly limiterUs: number
}

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
