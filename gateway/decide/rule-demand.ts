/** Demands of rules that depend on nothing but the rule's config. */
import type { Check, Demand } from '../types.js'

/** Returns one object per rule: equal requests are recognized by identity and share a call. */
export function ruleDemand<Config, D extends Demand>(
  demandOf: (config: Config) => D,
): (check: Check<Config>) => D {
  return ({ rule: { config, made = {} } }) => {
    made.demand ??= demandOf(config)
    return made.demand as D
  }
}
