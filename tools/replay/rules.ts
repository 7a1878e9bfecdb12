/** The rules outside project limits that a replay judges. */
import { isProjectLimits } from '../../config/load.js'
import type { Flood } from '../../gateway/explain/settings.js'
import type { WrittenWhen } from '../../gateway/policy/when.js'
import type { Loaded } from '../../gateway/run/load.js'
import type { KeyPart } from '../../gateway/types.js'

interface NamedRule {
  readonly id: string
  readonly kind: string
  readonly key: readonly KeyPart[]
  readonly enforceFor?: string | undefined
  readonly when: WrittenWhen | undefined
  /** The settings of a volumetric rule. */
  readonly flood: Flood | undefined
}

/** The rules of the policies outside project limits, which may count by more than the project. */
export function rulesOf(policies: readonly Loaded[]): NamedRule[] {
  const rules = new Map<string, NamedRule>()
  for (const { config } of policies) {
    for (const policy of config.policies) {
      if (isProjectLimits(policy)) continue
      for (const rule of policy.document.rules) {
        const { id, key, when, enforceFor } = rule
        const flood = policy.kind === 'volumetric' ? (rule as unknown as Flood) : undefined
        rules.set(`${id} ${key}`, { id, kind: policy.kind, key, when, enforceFor, flood })
      }
    }
  }
  return [...rules.values()]
}

/** Their ids, each once, for a sentence. */
export function names(rules: readonly { readonly id: string }[]): string {
  return [...new Set(rules.map(({ id }) => id))].join(', ')
}
