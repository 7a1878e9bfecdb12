/** What no schema can say of trials and shares. Pure. */
import type { UnplacedProblem } from './problem.js'
import { bucketOfTrial } from './rollout.js'
import { isProjectLimits, type PolicyFile } from './types.js'

type RolloutFault = UnplacedProblem & { readonly file: string }

/** A share of what is in force for nobody, and names that belong to trials. */
export function checkRollout(policies: readonly PolicyFile[]): RolloutFault[] {
  return policies.flatMap(policy => {
    const { file } = policy
    if (!isProjectLimits(policy)) {
      return policy.document.rules.flatMap((rule, i) => [
        ...checkShare(rule, file, ['rules', i]),
        ...checkName(rule.id, file, ['rules', i, 'id']),
      ])
    }
    const names = Object.keys(policy.document.buckets)
    return [
      ...checkShare(policy.document, file, []),
      ...names.flatMap(name => checkName(name, file, ['buckets', name])),
    ]
  })
}

function checkShare(
  { mode, enforceFor }: { readonly mode: string; readonly enforceFor?: string | undefined },
  file: string,
  path: UnplacedProblem['path'],
): RolloutFault[] {
  if (mode === 'enforce' || enforceFor === undefined) return []
  const message = `"enforceFor" says for which share a rule is enforced, but with mode: report-only that is nobody. Write mode: enforce, or remove enforceFor.`
  return [{ file, path: [...path, 'enforceFor'], message }]
}

function checkName(name: string, file: string, path: UnplacedProblem['path']): RolloutFault[] {
  const bucket = bucketOfTrial(name)
  if (bucket === undefined) return []
  const message = `"${name}" is what the trial of bucket "${bucket}" is called in logs and metrics: no bucket or rule can have a name that ends in ".trial".`
  return [{ file, path, message, atKey: path[0] === 'buckets' }]
}
