/**
 * Checks of endpoint rules and access entries that a schema cannot express: they name existing projects, and a rule's
 * cost fits its quota. Pure.
 */
import type { Path, UnplacedProblem } from '../problem.js'
import type { FileFault } from '../readable.js'
import type { ProjectEntry } from '../schema/projects.js'
import type { AccessPolicy, RulesPolicy } from '../types.js'
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

/** Faults of entries that name unknown projects; none while the declared projects are not known. */
export function checkAccess(
  files: readonly AccessPolicy[],
  projects: readonly ProjectEntry[] | undefined,
): FileFault[] {
  if (projects === undefined) return []
  return files.flatMap(({ file, document }) =>
    document.rules.flatMap((rule, i) =>
      unknownProjects(rule.projects, projects, ['rules', i, 'projects']).map(fault => ({ file, ...fault })),
    ),
  )
}
