/** The demand of a rule whose config says all of it. */
import type { Check, Demand, Rule } from '../types.js'

/** One object per rule: requests that ask for the same may then be seen to do so, and share a call. */
export function ruleDemand<Config>(demandOf: (config: Config) => Demand): (check: Check<Config>) => Demand {
  const demands = new WeakMap<Rule, Demand>()
  return ({ rule }) => {
    let demand = demands.get(rule)
    if (demand === undefined) {
      demand = demandOf(rule.config)
      demands.set(rule, demand)
    }
    return demand
  }
}
