/**
 * Checks of one endpoint rule that a schema cannot express: its `when` names existing projects, and its cost
 * fits its quota. Pure.
 */
import type { Path, UnplacedProblem } from '../problem.js'
import type { FileFault } from '../readable.js'
import type { ProjectEntry } from '../schema/projects.js'
import type { RulesPolicy } from '../types.js'
import { unknownProjects } from './project-names.js'

/** @param projects undefined when the declared projects are not known */
export function checkRules(
  policies: readonly RulesPolicy[],
  projects: readonly ProjectEntry[] | undefined,
): FileFault[] {
  return policies.flatMap(({ file, kind, document }) =>
    document.rules.flatMap((rule, i) => {
      const at = ['rules', i]
      const faults =
        projects === undefined
          ? []
          : unknownProjects(rule.when?.projects, projects, [...at, 'when', 'projects'])
      if (kind === 'volumetric') faults.push(...checkCost(rule, [...at, 'cost']))
      return faults.map(fault => ({ file, ...fault }))
    }),
  )
}

/** A volumetric rule's own keys are in the same map as the common ones. */
function checkCost({ cost, quota }: RulesPolicy['document']['rules'][number], path: Path): UnplacedProblem[] {
  const { requests } = quota as { readonly requests: number }
  if (typeof cost !== 'number' || cost <= requests) return []
  const message = `A request costs ${cost}, which is more than its quota of ${requests}: no request would ever be admitted.`
  return [{ path, message }]
}
