/** Checks of `enforceFor` that a schema cannot express. Pure. */
import type { UnplacedProblem } from '../problem.js'
import { isProjectLimits, type PolicyFile } from '../types.js'

type ShareFault = UnplacedProblem & { readonly file: string }

/** Reports `enforceFor` in report-only mode, where it has no effect. */
export function checkShares(policies: readonly PolicyFile[]): ShareFault[] {
  return policies.flatMap(policy => {
    const { file } = policy
    if (isProjectLimits(policy)) return checkShare(policy.document, file, [])
    return policy.document.rules.flatMap((rule, i) => checkShare(rule, file, ['rules', i]))
  })
}

function checkShare(
  { mode, enforceFor }: { readonly mode: string; readonly enforceFor?: number | undefined },
  file: string,
  path: UnplacedProblem['path'],
): ShareFault[] {
  if (mode === 'enforce' || enforceFor === undefined) return []
  const message = `"enforceFor" has no effect with mode: report-only. Write mode: enforce, or remove enforceFor.`
  return [{ file, path: [...path, 'enforceFor'], message }]
}
