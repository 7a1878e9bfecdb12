/** The rules outside project limits that a replay judges. */
import { isProjectLimits } from '../../config/load.js'
import type { Configuration } from '../../gateway/configured/load.js'
import type { Flood } from '../../gateway/explain/settings.js'
import type { WrittenWhen } from '../../gateway/policy/when.js'
import type { KeyPart } from '../../gateway/types.js'

interface NamedRule {
  readonly id: string
  readonly kind: string
  readonly key: readonly KeyPart[]
  readonly enforceFor?: number | undefined
  readonly when: WrittenWhen | undefined
  /** The settings of a volumetric rule. */
  readonly flood: Flood | undefined
}

/**
 * The rules of the policies outside project limits, which may count by more than the project. A rule of two policies is
 * there twice: its settings may differ.
 */
export function rulesOf(policies: readonly Configuration[]): NamedRule[] {
  return policies.flatMap(({ config }) =>
    config.policies.flatMap(policy => {
      if (isProjectLimits(policy)) return []
      return policy.document.rules.map(rule => {
        const { id, key, when, enforceFor } = rule
        const flood = policy.kind === 'volumetric' ? (rule as unknown as Flood) : undefined
        return { id, kind: policy.kind, key, when, enforceFor, flood }
      })
    }),
  )
}

/** Their ids, each once, for a sentence. */
export function names(rules: readonly { readonly id: string }[]): string {
  return [...new Set(rules.map(({ id }) => id))].join(', ')
}
