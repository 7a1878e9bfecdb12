/** Rules and demands that are made once, with room for what requests make of them. */
import type { Check, Demand, MadeOfDemand, MadeOfRule, Rule } from './types.js'

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
