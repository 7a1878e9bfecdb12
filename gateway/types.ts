/** The types that the gateway's modules exchange. Types only, so every module may import this file. */

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
} from '../config/words/words.js'

import type { MadeOfDemand, MadeOfRule } from './compiled-rule.js'

export type { AccessAction, Algorithm, Environment, KeyPart, Missing, Mode, OnStoreError, Plan }

/** What is known about a request before its body. Plain data: no socket, no response. */
export interface Facts {
  /** Request id, also sent to the upstream as `x-sluice-request-id`. */
  readonly id: string
  readonly method: string
  /** The path in normal form; the same text is matched and forwarded. */
  readonly path: string
  /** `path` in lower case, if the upstream ignores case: matched, counted and logged instead of `path`. */
  readonly foldedPath?: string | undefined
  /** Raw query with its `?`, or ''. */
  readonly query: string
  /** Authority of the request, lower-cased, without the port. */
  readonly host: string
  /** Client address behind trusted hops; IPv4-mapped addresses are folded to IPv4. */
  readonly client: string
  /** What `client` is counted by: its IPv4 address or IPv6 /64. */
  readonly network: string
  /** True when the TCP peer is a trusted proxy, so its identity headers count. */
  readonly trusted: boolean
  /** True when the request asks for a WebSocket. */
  readonly upgrade?: boolean | undefined
  /** True for a CORS preflight. */
  readonly preflight?: boolean | undefined
  /** TLS fingerprints: sent by a trusted hop, or computed from TLS terminated here. */
  readonly ja3?: string | undefined
  readonly ja4?: string | undefined
  /** True when the request carries a credential, valid or not (which ones count is a setting), or one was checked. */
  readonly authenticated: boolean
  /** A header's value by lower-case name; repeated headers are joined with `, ` (Cookie with `; `). */
  header(name: string): string | undefined
}

export interface Project {
  readonly id: string
  readonly plan: Plan
  readonly environment: Environment
  /** True when it was identified by a credential that was checked. */
  readonly verified?: boolean | undefined
  /** What its credential allows, for routes with `scopes`; undefined if such credentials have no scopes. */
  readonly scopes?: readonly string[] | undefined
  /** Its name in entries and conditions, and for upstreams, if not `id`: `host:NAME` for an unknown caller that is not counted by host. */
  readonly alias?: string | undefined
  /** The network that an unknown caller is counted by. Its id contains it, so logs and lists show another name. */
  readonly client?: string | undefined
}

/**
 * What the check of a request's credential said. `none`: there was none that anybody checks. `unchecked`: it could not be
 * checked.
 */
export type CredentialCheck = 'none' | 'invalid' | 'verified' | 'unchecked'

/** Where in the policy files something is written. For changes by the admin port: its path, without a line. */
export interface Source {
  readonly file: string
  readonly line: number | undefined
}

/** `enforceFor`: the rule is enforced for this percentage of its keys or projects, and report-only for the others. */
export interface Share {
  readonly percent: number
  readonly of: 'keys' | 'projects'
}

/** One thing to check. */
export interface Rule<Config = unknown> {
  /** Stable name: counters are keyed by it, so editing a rule neither refills nor resets another. */
  readonly id: string
  readonly kind: string
  /** The mode in force now. */
  readonly mode: Mode
  /** If the mode was set by the admin port: the mode in the files, and the path of that change. */
  readonly forNow?: { readonly declared: Mode; readonly src: string } | undefined
  readonly key: readonly KeyPart[]
  readonly missing: Missing
  readonly onStoreError: OnStoreError
  /** Absent if the rule is enforced for all or for none. */
  readonly share?: Share | undefined
  /** The settings of the limit plugin named by `kind`. */
  readonly config: Config
  readonly source: Source
  /** Its name in metrics if the id is not from the files, because that would not bound the number of series. */
  readonly series?: string | undefined
  /** The rule applies only to matched requests for which all of these conditions hold. */
  readonly when?: readonly Condition[] | undefined
  /** True when it applies to GET, HEAD and OPTIONS too. */
  readonly reads?: boolean | undefined
  /** The gateway's own: see `compiledRule`. A rule without it works, but everything is made anew for each request. */
  readonly made?: MadeOfRule | undefined
}

/** One condition of a rule's `when`. */
export interface Condition {
  readonly on: 'authenticated' | 'projects' | 'plans' | 'environments' | 'networks'
  holds(facts: Facts, project: Project): boolean
}

/** A rule that matches a request. `route` is the text of its pattern, so logs have a bounded set of values. */
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

/** Calendar periods, which begin and end by the local time of a time zone, daylight saving time included. */
export interface Calendar {
  readonly unit: CalendarUnit
  /** A name of the IANA time zone database. */
  readonly timezone: string
}

/** A length of time with a quota. */
export interface Window {
  /** Such as `burst` or `sustained`; in responses the policy is called `<rule>.<window>`. */
  readonly name: string
  readonly quota: number
  /** Length in ms; for a calendar window at least that of its longest period. */
  readonly ms: number
  /** For rolling windows; a calendar window counts by its periods. */
  readonly algorithm: Algorithm
  readonly calendar?: Calendar | undefined
}

/** What a limiter wants counted. The demands of a request are granted together, or none is. */
export type Demand =
  | {
      readonly kind: 'windows'
      readonly windows: readonly Window[]
      /** An instance may lease tokens in advance and spend them locally. */
      readonly lease: boolean
      /** What this request spends in each window; a whole number, 1 when left out. */
      readonly cost?: number | undefined
      /** The gateway's own: see `compiledDemand`. */
      readonly made?: MadeOfDemand | undefined
    }
  | {
      readonly kind: 'slots'
      readonly max: number
      readonly ttlMs: number
      /** The slot is released after this time even if the request goes on. Absent: only with the end of the request. */
      readonly maxHoldMs?: number | undefined
      /** How long an upgrade holds the slot. Default: for the handshake. */
      readonly count?: 'handshake' | 'lifetime' | undefined
    }
  | MeterDemand

/**
 * A window that begins with the first request of a key and ends as a whole. A request beyond the quota may block the
 * key for longer. Counts admitted requests and the first refused one.
 */
export interface MeterDemand {
  readonly kind: 'meter'
  /** What one key may spend in the window. */
  readonly quota: number
  /** Length of the window in milliseconds. */
  readonly ms: number
  /** A key that exceeds its quota is refused for at least this long, in ms; 0 means until its window ends. */
  readonly blockMs: number
  /** What this request spends; a whole number, 1 when left out. */
  readonly cost?: number | undefined
  /**
   * Determines from the upstream's response what this request spends, in units from 0 to 1,000,000,000. The request is
   * admitted while one unit is left, and charged when the response begins, at most up to the quota.
   */
  readonly afterAnswer?: ((answer: UpstreamAnswer) => number) | undefined
  /** True when clients must not learn the numbers: refusals then have the code `abnormal-usage`. */
  readonly hidden?: boolean | undefined
}

/** The fields of an upstream's response, by lower-case name. */
export interface AnswerFields {
  get(name: string): string | undefined
}

/** The head of an upstream's response. */
export interface UpstreamAnswer {
  /** 0 if the client left before the response. */
  readonly status: number
  /** A header's value by lower-case name; repeated headers are joined with `, `. */
  header(name: string): string | undefined
}

/** What counted: Redis, tokens leased from Redis, memory by configuration, memory while Redis is away, or nothing. */
export type StoreName = 'redis' | 'lease' | 'memory' | 'local' | 'none'

/** One policy's state after the decision. */
export interface Reading {
  /** Name in responses: `<bucket>.burst`, or the rule's id for slots. */
  readonly policy: string
  /** The quota in effect: the whole one, or this instance's share of it while Redis is away. */
  readonly quota: number
  /** Window length in ms, for a calendar window that of the current period; absent for slots (concurrent requests). */
  readonly windowMs?: number | undefined
  /** Set for a calendar window. */
  readonly calendar?: Calendar | undefined
  /** Spent so far, including this request if it was admitted. Absent if nothing could be counted. */
  readonly used: number | undefined
  /** What is left of `quota`. */
  readonly left: number | undefined
  /** What the request spends, if not 1; 0 if only the response determines it. */
  readonly cost?: number | undefined
  /** Ms until more quota is available; on refusal until this request could pass. */
  readonly resetMs: number
  readonly violated: boolean
  /** Its numbers appear in decision records only, because a client that knew them could stay just below the limit. */
  readonly hidden?: boolean | undefined
}

/** The result of one rule. */
export interface Outcome {
  readonly rule: Rule
  readonly route: string
  /** The key that was counted by; hashed before it reaches a log. */
  readonly key: string
  readonly result: 'allowed' | 'limited' | 'unavailable'
  readonly store: StoreName
  readonly readings: readonly Reading[]
}

/** The results of all rules for a request. */
export interface Judgement {
  readonly allowed: boolean
  readonly outcomes: readonly Outcome[]
  readonly reportOnly: readonly Outcome[]
}

/** The decision on a request. Report-only outcomes are separate and never make `allowed` false. */
export interface Verdict extends Judgement {
  /** Resolves when every report-only rule has been counted; undefined if that is already the case. Never rejects. */
  readonly settled: Promise<void> | undefined
  /** True when its enforced bucket has no limit: the upstream's rate-limit fields are then removed too. */
  readonly unlimited?: boolean | undefined
  /** True while the request holds a slot of an enforced in-flight rule. */
  readonly holdsSlot: boolean
  /** The upstream has responded, or never will: charges the costs that depend on it. Not awaited. */
  answered(status: number, fields: AnswerFields): void
  /** The upgrade was accepted: releases the slots that are held for the handshake only. */
  upgraded(): void
  /** Releases every slot; safe to call more than once. */
  release(): void
}

/** Where the client's response came from. */
export type AnswerSource = 'upstream' | 'gateway'

/** What an observer gets about a finished request. */
export interface Finished {
  /** Request id, as in `X-Request-Id` of the response. */
  readonly id: string
  readonly method: string
  /** Undefined if the request was too malformed. */
  readonly facts: Facts | undefined
  readonly project: Project | undefined
  /** Undefined if nobody was asked who is calling. */
  readonly credential?: CredentialCheck | undefined
  /** Why the credential was found wrong, in a word or two. */
  readonly credentialFault?: string | undefined
  /** The identifier that found the project. */
  readonly identifier?: string | undefined
  readonly upstream: string
  /** The upstream address that was tried last; '' if none was. */
  readonly address: string
  readonly verdict: Judgement | undefined
  /** Revision of the policy that the request was decided by. */
  readonly revision: string
  /** Status sent to the client; 0 if the client left before. */
  readonly status: number
  readonly source: AnswerSource
  /** Code of our own refusal or error, or `answer-cut` if the response was cut after it had begun; else undefined. */
  readonly error?: string | undefined
  /** The cause of `error`, in words for the log. */
  readonly cause?: string | undefined
  /** Bytes of the request body received, and of the response body written; for a WebSocket all bytes each way. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** Wall-clock start, ms since the epoch. */
  readonly startedAt: number
  readonly durationMs: number
  /** Ms until the head of the upstream's response, or until it was given up; undefined if no upstream was tried. */
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
