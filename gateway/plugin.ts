/** What a plugin is: name, schema, create, close. The package's public entry. */
import type { Static, TSchema } from 'typebox'
import type {
  Check,
  Demand,
  Facts,
  Finished,
  Log,
  OnStoreError,
  Project,
  Reading,
  Rule,
  StoreName,
} from './types.js'

export { type Static, Type } from 'typebox'
export { Duration } from '../config/duration.js'
export type {
  Check,
  Demand,
  Facts,
  Finished,
  Log,
  Outcome,
  Project,
  Reading,
  Rule,
  Verdict,
  Window,
} from './types.js'

/** What the gateway lends a plugin. */
export interface Tools {
  readonly log: Log
  /** The configured projects, for identifiers. */
  readonly projects: readonly KnownProject[]
}

/** What the gateway lends a limit plugin. */
export interface LimitTools extends Tools {
  readonly counter: KeyCounter
}

/** Counts for limiters that count by themselves: in Redis, or in this process when there is none. */
export interface KeyCounter {
  /**
   * Counts one request, refused ones too, as `cost` of them (a whole number, 1 when left out). While Redis is away it goes
   * on as `onStoreError` says, within `store.deadline`; `'unavailable'` when that says `closed`. Never rejects.
   */
  spend(key: string, limit: KeyLimit, onStoreError: OnStoreError, cost?: number): Spent | Promise<Spent>
  /** What `spend` would answer now; nothing is counted. */
  peek(key: string, limit: KeyLimit, onStoreError: OnStoreError, cost?: number): Spent | Promise<Spent>
  /** A refusal that is known to stand, without asking anybody. */
  recall(key: string, limit: KeyLimit): KeyCount | undefined
}

/** How much one key may spend. The limit may change at any time: what was spent stays. */
export interface KeyLimit {
  /** Requests per window. A window begins with the first request and ends whole. */
  readonly quota: number
  /** Milliseconds of a window, in whole seconds. */
  readonly windowMs: number
  /** A key that passes its quota is refused for at least so many milliseconds; 0 means until its window ends. */
  readonly blockMs: number
}

export type Spent = 'unavailable' | KeyCount

/** The state of a key after a request. */
export interface KeyCount {
  readonly granted: boolean
  readonly store: StoreName
  /** Counted against: the whole quota, or this instance's share of it while Redis is away. */
  readonly quota: number
  /** Requests counted, this one included; undefined when nobody counted. */
  readonly used: number | undefined
  /** Left of that quota. */
  readonly left: number | undefined
  /** Until the window ends; on refusal until a request could pass. */
  readonly resetMs: number
  /** Undoes what was granted, unless its window has ended. */
  readonly giveBack?: (() => void) | undefined
}

/** A project as `projects.yaml` lists it, with what identifies it. */
export interface KnownProject extends Project {
  readonly hosts: readonly string[]
  readonly paths: readonly string[]
  /** SHA-256 of each API key, in lower-case hex. */
  readonly apiKeyHashes: readonly string[]
}

/** Says who is calling; undefined passes the question to the next identifier. */
export interface Identifier {
  identify(facts: Facts): Project | undefined
  close?(): Promise<void>
}

/** Says what a check wants counted: the gateway counts all demands of a request in one step. */
export interface CountedLimiter<Config> extends LimiterBase<Config> {
  demand(check: Check<Config>): Demand
}

/** Counts by itself. What it grants is given back when another rule refuses the request. */
export interface SelfCountingLimiter<Config> extends LimiterBase<Config> {
  /**
   * Within `store.deadline`: a limiter that throws or is late is handled like a counter store that is away, and one that
   * is `'unavailable'` refuses because it cannot count.
   */
  spend(check: Check<Config>): Ruling | 'unavailable' | Promise<Ruling | 'unavailable'>
  /**
   * A refusal that is known to stand without asking anybody: then no other rule is asked either, so a flood of refused
   * requests costs nothing.
   */
  recall?(check: Check<Config>): Ruling | undefined
  /** What `spend` would answer now, with nothing counted: for `sluice explain`, which knows no numbers without it. */
  peek?(check: Check<Config>): Ruling | 'unavailable' | Promise<Ruling | 'unavailable'>
}

export type Limiter<Config> = CountedLimiter<Config> | SelfCountingLimiter<Config>

interface LimiterBase<Config> {
  /** False when a rule has nothing to say about a request it matches. */
  applies?(rule: Rule<Config>, facts: Facts): boolean
  close?(): Promise<void>
}

/** The answer of a limiter that counts by itself. */
export interface Ruling {
  readonly granted: boolean
  /** Who counted. */
  readonly store: StoreName
  /** The state after the answer. */
  readonly readings: readonly Reading[]
  /** Undoes what was granted, as if it had never been asked for. */
  readonly giveBack?: (() => void) | undefined
  /** Called once when the request's upstream work has ended. */
  release?(): void
}

/** Watches finished requests; it cannot change them. What it throws is logged, and nobody waits for it. */
export interface Observer {
  finished(event: Finished): void
  close?(): Promise<void>
}

interface Base<Schema extends TSchema> {
  readonly name: string
  /** What may be written in YAML; joins the config schema, so `check` and the editor know it. */
  readonly schema: Schema
}
export type IdentifyPlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'identify'
  create(config: Static<S>, tools: Tools): Identifier
}
/** `schema` describes the keys of one rule beyond the common ones; each rule carries its own config. */
export type LimitPlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'limit'
  /** True when its rules look at GET, HEAD and OPTIONS too, from which endpoint-based limits are exempt (spec, 'Limits'). */
  readonly limitsReads?: boolean
  create(tools: LimitTools): Limiter<Static<S>>
}
/** Made anew for each configuration; its settings stand in `gateway.yaml` under `observe`. */
export type ObservePlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'observe'
  create(config: Static<S>, tools: Tools): Observer
}
export type Plugin = IdentifyPlugin | LimitPlugin | ObservePlugin

/** Returns its argument; exists so that TypeScript infers `config` from `schema`. `create` must do no traffic. */
export function definePlugin<S extends TSchema>(plugin: IdentifyPlugin<S>): IdentifyPlugin<S>
export function definePlugin<S extends TSchema>(plugin: LimitPlugin<S>): LimitPlugin<S>
export function definePlugin<S extends TSchema>(plugin: ObservePlugin<S>): ObservePlugin<S>
export function definePlugin(plugin: Plugin): Plugin {
  return plugin
}
