/** The types of a plugin; the package's public entry. */
import type { Static, TSchema } from 'typebox'
import type { Demand } from './demand.js'
import type { Check, Facts, Log, Project, Rule } from './types.js'
import type { Finished } from './verdict.js'

export { type Static, Type } from 'typebox'
export { Duration } from '../config/schema/duration.js'
export type { Calendar, Demand, MeterDemand, UpstreamAnswer, Window } from './demand.js'
export type { Check, Facts, Log, Project, Rule } from './types.js'
export type { Finished, Outcome, Reading, Verdict } from './verdict.js'

/** What the gateway hands a plugin. */
export interface Tools {
  readonly log: Log
  /** The configured projects, for identifiers. */
  readonly projects: readonly KnownProject[]
  /** The plans and environments declared in projects.yaml; a project cannot have others. */
  readonly plans: readonly string[]
  readonly environments: readonly string[]
  /** The folder of gateway.yaml, from which the files count that it names. */
  readonly folder: string
  /** The file of API keys, if gateway.yaml names one. */
  readonly apiKeys?: string | undefined
  /** Plan and environment of unknown projects; undefined if these are rejected. */
  readonly unknown?: Pick<Project, 'plan' | 'environment'> | undefined
}

/** A project of `projects.yaml`, with what it is identified by. */
export interface KnownProject extends Project {
  readonly hosts: readonly string[]
  readonly paths: readonly string[]
  /** SHA-256 of each API key, in lower-case hex. */
  readonly apiKeyHashes: readonly string[]
}

/** A credential that was checked and found wrong: expired, revoked, unknown, or meant for somebody else. */
export interface WrongCredential {
  /** The credential. It is counted by its hash, and never logged. */
  readonly wrongCredential: string
  /** For decision records, in a word or two, such as `expired`. Clients are not told. */
  readonly reason?: string | undefined
  /** True if that may change by itself, such as when a key is not known yet: it is refused, and not counted as a guess. */
  readonly mayBeRight?: boolean | undefined
}

/** A header, in lower case, and the authentication scheme with which it has to begin if only those are meant. */
export interface CredentialHeader {
  readonly header: string
  readonly scheme?: string | undefined
}

/**
 * Finds the project of a request. Undefined leaves it to the next identifier, and so does a wrong credential, unless the
 * route requires one. An identifier that must ask somebody returns a promise, and has 2 s.
 */
export interface Identifier {
  /** @param explains true if nobody sends the request, and somebody asks what would become of it: this is no use of a credential */
  identify(facts: Facts, explains?: boolean): Answered | Promise<Answered>
  /** The configuration comes into force: from now on the identifier may use the network and files. */
  start?(): void
  close?(): Promise<void>
}

type Answered = Project | WrongCredential | undefined

/**
 * Determines what a check counts. The gateway counts all demands of a request in one step, all or none. Return the same
 * object for equal demands, so that requests with equal demands are recognized and can share a call.
 */
export interface Limiter<Config> {
  /** What to count. An exception is handled like an unreachable counter store, and logged. */
  demand(check: Check<Config>): Demand
  /** False when the rule does not apply to a request that it matches. */
  applies?(rule: Rule<Config>, facts: Facts): boolean
  close?(): Promise<void>
}

/** Watches finished requests and cannot change them. Exceptions are logged; no request waits for an observer. */
export interface Observer {
  finished(event: Finished): void
  close?(): Promise<void>
}

interface Base<Schema extends TSchema> {
  readonly name: string
  /** The settings allowed in YAML; part of the config schema, so `check` and the editor know them. */
  readonly schema: Schema
}
export type IdentifyPlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'identify'
  /** True when it finds projects by credentials that it checks; `authenticated: verified` relies on this. */
  readonly verifies?: boolean
  /** True when it finds only projects that projects.yaml lists. Default: it may find others. */
  listedOnly?(config: Static<S>, tools: Pick<Tools, 'unknown'>): boolean
  /** True when the projects it finds have `scopes`. */
  readonly givesScopes?: boolean
  /** How clients learn what credential is missing: an authentication scheme for WWW-Authenticate (RFC 9110 section 11.6.1). */
  challenge?(config: Static<S>): string
  /**
   * The header that is removed from requests whose credential is in it, whether or not another identifier has found the
   * caller before; undefined if none is. A name in lower case, or with the scheme of the
   * credential, which is also found behind another credential, where the identifier does not look.
   */
  strips?(config: Static<S>): string | CredentialHeader | undefined
  create(config: Static<S>, tools: Tools): Identifier
}
/** `schema` describes the keys of one rule beyond the common ones; each rule carries its own config. */
export type LimitPlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'limit'
  /** True when its rules also count GET, HEAD and OPTIONS, which endpoint-based limits do not (spec, 'Limits'). */
  readonly limitsReads?: boolean
  create(tools: Tools): Limiter<Static<S>>
}
/** Created anew for each configuration; its settings are in `gateway.yaml` under `observe`. */
export type ObservePlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'observe'
  create(config: Static<S>, tools: Tools): Observer
}
export type Plugin = IdentifyPlugin | LimitPlugin | ObservePlugin

/** Returns its argument, so that TypeScript infers `config` from `schema`. `create` must not use the network. */
export function definePlugin<S extends TSchema>(plugin: IdentifyPlugin<S>): IdentifyPlugin<S>
export function definePlugin<S extends TSchema>(plugin: LimitPlugin<S>): LimitPlugin<S>
export function definePlugin<S extends TSchema>(plugin: ObservePlugin<S>): ObservePlugin<S>
export function definePlugin(plugin: Plugin): Plugin {
  return plugin
}
