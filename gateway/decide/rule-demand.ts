/** Demands of rules that depend on nothing but the rule's config. */
import type { Check, Demand, Rule } from '../types.js'

/** Returns one object per rule: equal requests are recognized by identity and share a call. */
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
