/** What no schema can say of one endpoint rule: that its `when` names projects there are, and its cost fits its quota. Pure. */
import type { Path, UnplacedProblem } from './problem.js'
import { type FileFault, type Readable, unknownName } from './readable.js'
import type { RulesPolicy } from './types.js'

type Written = RulesPolicy['document']['rules'][number]

/** @param projects undefined while it is not known which there are */
export function checkRules(policies: readonly RulesPolicy[], projects: Readable['projects']): FileFault[] {
  const known = projects && new Set(projects.map(({ id }) => id))
  return policies.flatMap(({ file, kind, document }) =>
    document.rules.flatMap((rule, i) => {
      const faults = known === undefined ? [] : checkProjects(rule, known, ['rules', i, 'when', 'projects'])
      if (kind === 'volumetric') faults.push(...checkCost(rule, ['rules', i, 'cost']))
      return faults.map(fault => ({ file, ...fault }))
    }),
  )
}

/** Those of unknown hosts need no declaration: they are counted as `host:NAME`. */
function checkProjects({ when }: Written, known: ReadonlySet<string>, path: Path): UnplacedProblem[] {
  return (when?.projects ?? []).flatMap((id, i) => {
    if (known.has(id) || id.startsWith('host:')) return []
    return [{ path: [...path, i], message: unknownName('project', id, known) }]
  })
}

/** The keys of a volumetric rule stand beside the common ones. */
function checkCost({ cost, quota }: Written, path: Path): UnplacedProblem[] {
  const { requests } = quota as { readonly requests: number }
  if (typeof cost !== 'number' || cost <= requests) return []
  const message = `A request costs ${cost}, which is more than its quota of ${requests}: none would ever be admitted.`
  return [{ path, message }]
}
