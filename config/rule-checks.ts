/** What no schema can say of one endpoint rule: that its `when` names what is declared, and its cost fits its quota. Pure. */
import { type Path, type UnplacedProblem, unknown } from './problem.js'
import type { RulesPolicy } from './types.js'

/** What a `when` may name; undefined while that is not known. */
export interface Declared {
  readonly projects: readonly string[] | undefined
  readonly plans: readonly string[] | undefined
  readonly environments: readonly string[] | undefined
}

type Fault = UnplacedProblem & { readonly file: string }

export function checkRules(policies: readonly RulesPolicy[], declared: Declared): Fault[] {
  return policies.flatMap(({ file, kind, document }) =>
    document.rules.flatMap((rule, i) => {
      const faults = (['projects', 'plans', 'environments'] as const).flatMap(what =>
        undeclared(what, rule.when?.[what], declared[what], ['rules', i, 'when', what]),
      )
      if (kind === 'volumetric') faults.push(...checkCost(rule, ['rules', i, 'cost']))
      return faults.map(fault => ({ file, ...fault }))
    }),
  )
}

/** Projects of unknown hosts need no declaration: they are counted as `host:NAME`. */
function undeclared(
  what: keyof Declared,
  named: readonly string[] = [],
  known: readonly string[] | undefined,
  path: Path,
): UnplacedProblem[] {
  if (known === undefined) return []
  return named.flatMap((name, i) => {
    const isDeclared = known.includes(name) || (what === 'projects' && name.startsWith('host:'))
    return isDeclared ? [] : [{ path: [...path, i], message: unknown(what.slice(0, -1), name, known) }]
  })
}

/** The keys of a volumetric rule stand beside the common ones. */
function checkCost({ cost, quota }: RulesPolicy['document']['rules'][number], path: Path): UnplacedProblem[] {
  const { requests } = quota as { readonly requests: number }
  if (typeof cost !== 'number' || cost <= requests) return []
  const message = `A request costs ${cost}, which is more than its quota of ${requests}: none would ever be admitted.`
  return [{ path, message }]
}
