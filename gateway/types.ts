/** The types that the gateway's modules exchange. Types only, so every module may import this file. */

import type { Waits } from '../config/words/waits.js'
import type {
  AccessAction,
  Algorithm,
  Environment,
  KeyPart,
  Missing,
  Mode,
  OnStoreError,
  Plan,
} from '../config/words/words.js'

import type { MadeOfRule } from './compiled-rule.js'

export type { AccessAction, Algorithm, Environment, KeyPart, Missing, Mode, OnStoreError, Plan }

/** What is known about a request before its body. Plain data: no socket, no response. */
export interface Facts {
  /** Request id, also sent to the upstream as `x-sluice-request-id`. */
  readonly id: string
  readonly method: string
  /** The path in normal form, which is matched and counted. */
  readonly path: string
  /** The path as it is forwarded, with escapes of sub-delimiters (`%2B`) as the client wrote them; by default `path`. */
  readonly speltPath?: string | undefined
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
  /** The certificate that the client sent on this connection, where one was asked for. */
  readonly certificate?: ClientCertificate | undefined
  /** True when the request carries a credential, valid or not (which ones count is a setting), or one was checked. */
  readonly authenticated: boolean
  /** A header's value by lower-case name; repeated headers are joined with `, ` (Cookie with `; `). */
  header(name: string): string | undefined
}

/** A client's certificate: the names in it. */
export interface ClientCertificate {
  /** True if one of `clientCa` has issued it, and it was valid when the connection began. Without that its names mean nothing. */
  readonly trusted: boolean
  /** When it expires, in ms since the epoch: a connection, and a session that is resumed, may outlive it. */
  readonly validUntil: number
  readonly commonName: string | undefined
  /** Subject alternative names. */
  readonly dnsNames: readonly string[]
  readonly uris: readonly string[]
  /** SHA-256 of the certificate, in hexadecimal. */
  readonly fingerprint: string
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
  /** True when it counts the messages of WebSockets, and no request. */
  readonly countsMessages?: true | undefined
  /** True when no response shows its numbers. Unlike a hidden reading, this does not change the code of refusals. */
  readonly hidesNumbers?: boolean | undefined
  /** While it is enforced, requests over the limit wait this long instead of being refused. */
  readonly waits?: Waits | undefined
  /** The gateway's own: see `compiledRule`. A rule without it works, but everything is made anew for each request. */
  readonly made?: MadeOfRule | undefined
}

/** One condition of a rule's `when`. */
export interface Condition {
  readonly on: 'authenticated' | 'projects' | 'plans' | 'environments' | 'networks'
  holds(facts: Facts, project: Project): boolean
}

/** The JSON-RPC calls in the body of a request. */
export interface Calls {
  /** What they count as: the method, with the tool of `tools/call`, or what several methods or unreadable bodies share. */
  readonly name: string
  /** How many there are, from 1: a batch has several. */
  readonly count: number
  readonly isBatch: boolean
  /** The ids of those that are answered, as JSON; undefined if the body cannot be read. */
  readonly ids: readonly string[] | undefined
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
  /** How many calls the request makes, if the rule counts by them (`json-rpc`): it costs as many times more. */
  readonly calls?: number | undefined
  /** What the request reserves, if its response tells what it costs. */
  readonly reserve?: number | undefined
}

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
