/** Rules and demands that are made once, with room for what requests make of them. */

import type { Demand } from './demand.js'
import type { Check, Rule, Source } from './types.js'
import type { Reading } from './verdict.js'

/**
 * A rule with its `made`, which a copy by spreading leaves behind: what was made of one rule must not serve another. So
 * every changed copy is made by this function, too.
 */
export function compiledRule<Config>(members: Rule<Config>): Rule<Config> {
  const made: MadeOfRule = {}
  return Object.defineProperty({ ...members }, 'made', { value: made })
}

/** A demand with its `made`, for the many requests that share it. */
export function compiledDemand<D extends Demand & { kind: 'windows' }>(demand: D): D {
  const made: MadeOfDemand = {}
  return Object.defineProperty({ ...demand }, 'made', { value: made })
}

/** The demand of rules that depends on nothing but their config: one object per rule, so equal requests share a call. */
export function ruleDemand<Config, D extends Demand>(
  demandOf: (config: Config) => D,
): (check: Check<Config>) => D {
  return ({ rule: { config, made = {} } }) => {
    made.demand ??= demandOf(config)
    return made.demand as D
  }
}

/** `policies/limits.yaml:7`; for what the admin port has set, its path. */
export function placeOf({ file, line }: Source): string {
  return line === undefined ? file : `${file}:${line}`
}

/** What is made of a rule when a request first needs it. */
export interface MadeOfRule {
  /** Its counter keys, by project, if it counts by the project alone. */
  keys?: Map<string, string>
  /** Its demand, if that depends on the rule alone: one object, as equal demands are recognized by identity. */
  demand?: Demand
  /** The same for requests of another cost. */
  demandsByCost?: Map<number, Demand>
  /** The rule for keys outside its share. */
  reporting?: Rule
  /** The rule in a mode set for now, and that mode. */
  forNow?: { readonly set: object; readonly rule: Rule }
  policyTexts?: PolicyTexts
  refusal?: RefusalText
}

/** Texts of the rate-limit fields that depend on the policies only, not on what is left of them. */
export interface PolicyTexts {
  readonly shown: readonly Reading[]
  /** The value of RateLimit-Policy. */
  readonly policies: string
  /** What follows the quota in x-ratelimit-limit. */
  readonly windows: string
  /** What precedes the remaining quota in RateLimit, for each reading. */
  readonly beforeLeft: readonly string[]
}

/** One rule's part of a refusal. */
export interface RefusalText {
  /** Sentences for the client's developers. */
  readonly text: string
  /** The violated policies, or the rule itself when the request had no key to count by. */
  readonly policies: readonly string[]
  /** True when the numbers of the rule are kept from the client. */
  readonly hidden: boolean
  readonly violated: readonly Reading[]
}

/** What is made of a demand when it is first sent to Redis. */
export interface MadeOfDemand {
  /** Arguments of the scripts. They hold while this process's clock, in ms since the epoch, is between these times. */
  arguments?: { readonly values: readonly string[]; readonly since: number; readonly until: number }
}
