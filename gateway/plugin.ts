/** What a plugin is: name, schema, create, close. The package's public entry. */
import type { Static, TSchema } from 'typebox'
import type { Check, Demand, Facts, Finished, Log, Project, Rule } from './types.js'

export { type Static, Type } from 'typebox'
export { Duration } from '../config/duration.js'
export type {
  Calendar,
  Check,
  Demand,
  Facts,
  Finished,
  Log,
  MeterDemand,
  Outcome,
  Project,
  Reading,
  Rule,
  UpstreamAnswer,
  Verdict,
  Window,
} from './types.js'

/** What the gateway hands a plugin. */
export interface Tools {
  readonly log: Log
  /** The configured projects, for identifiers. */
  readonly projects: readonly KnownProject[]
  /** The plans and environments that projects.yaml declares: a project may be given no others. */
  readonly plans: readonly string[]
  readonly environments: readonly string[]
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

/**
 * Says what a check wants counted: the gateway counts all demands of a request in one step, all or none. Rules that ask for
 * the same should be given the same object again, so that requests are seen to ask for the same and share a call.
 */
export interface Limiter<Config> {
  /** What to count. What it throws is handled like a counter store that is away, and named in the log. */
  demand(check: Check<Config>): Demand
  /** False when a rule has nothing to say about a request it matches. */
  applies?(rule: Rule<Config>, facts: Facts): boolean
  close?(): Promise<void>
}

/** Watches finished requests and cannot change them. What it throws is logged, and no request waits for it. */
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
  /** True when it finds projects by credentials that it checks: `authenticated: verified` counts on it. */
  readonly verifies?: boolean
  create(config: Static<S>, tools: Tools): Identifier
}
/** `schema` describes the keys of one rule beyond the common ones; each rule carries its own config. */
export type LimitPlugin<S extends TSchema = TSchema> = Base<S> & {
  readonly kind: 'limit'
  /** True when its rules look at GET, HEAD and OPTIONS too, from which endpoint-based limits are exempt (spec, 'Limits'). */
  readonly limitsReads?: boolean
  create(tools: Tools): Limiter<Static<S>>
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
