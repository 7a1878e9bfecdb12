/**
 * Checks of rules, access entries and shares that a schema cannot express: they name existing projects, a rule's cost
 * fits its quota, and a share has an effect. Pure.
 */
import { type Path, type UnplacedProblem, unknownName } from '../problem.js'
import { HOST_NAME_PATTERN, type ProjectEntry } from '../schema/projects.js'
import {
  type AccessPolicy,
  type FileFault,
  isProjectLimits,
  type PolicyFile,
  type RulesPolicy,
} from '../types.js'
import { BY_CLIENT, BY_HOST, IN_FLIGHT, VOLUMETRIC } from '../words/words.js'

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
      if (kind === VOLUMETRIC) faults.push(...checkCost(rule, [...at, 'cost']), ...checkMessages(rule, at))
      return faults.map(fault => ({ file, ...fault }))
    }),
  )
}

type RuleEntry = RulesPolicy['document']['rules'][number]

/** A volumetric rule's own keys are in the same map as the common ones. */
function checkCost({ cost, quota, count = 'request' }: RuleEntry, path: Path): UnplacedProblem[] {
  const { requests, trial } = quota as { readonly requests: number; readonly trial?: { requests: number } }
  const least = Math.min(requests, trial?.requests ?? requests)
  if (typeof cost !== 'number' || cost <= least) return []
  const which = cost > requests ? `its quota of ${requests}` : `the quota of ${least} on trial`
  const message = `A ${count} costs ${cost}, which is more than ${which}: no ${count} would ever be admitted.`
  return [{ path, message }]
}

/** Settings that a rule which counts messages cannot have: messages have no answer, and only their headers are read. */
function checkMessages({ count, countWhen, cost, key }: RuleEntry, at: Path): UnplacedProblem[] {
  if (count !== 'message') return []
  const faults: UnplacedProblem[] = []
  const answers = 'Messages of a WebSocket have no answer to count them by'
  if (countWhen !== undefined) {
    faults.push({ path: [...at, 'countWhen'], message: `${answers}: remove countWhen, or count: message.` })
  }
  if (typeof cost === 'object') {
    faults.push({ path: [...at, 'cost'], message: `${answers}: write a number as the cost, such as 1.` })
  }
  for (const [i, part] of key.entries()) {
    if (part !== 'json-rpc') continue
    const message = 'What messages of a WebSocket hold is not read, so json-rpc cannot be a part of the key.'
    faults.push({ path: [...at, 'key', i], message })
  }
  return faults
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

const HOST_NAME = new RegExp(HOST_NAME_PATTERN)

/** True for a host's name as projects and routes have it; false for patterns, capitals, and names with a port. */
export const isHostName = (text: string): boolean => HOST_NAME.test(text)

/** Why an entry or condition cannot name unknown callers by this id; undefined when it can, and for all other ids. */
export function unknownHostFault(id: string): string | undefined {
  if (id.startsWith(BY_CLIENT)) return `"${id}" is no project: name the address under "networks".`
  if (!id.startsWith(BY_HOST) || isHostName(id.slice(BY_HOST.length))) return undefined
  return `"${id}" stands for no requests: write the host's name in lowercase and without a port, such as "${BY_HOST}example.com".`
}

/** Reports the ids in `named` that do not exist, each at its place in the list at `path`. */
function unknownProjects(
  named: readonly string[] = [],
  projects: readonly ProjectEntry[],
  path: Path,
): UnplacedProblem[] {
  if (named.length === 0) return []
  const known = new Set(projects.map(({ id }) => id))
  return named.flatMap((id, i) => {
    const fault = unknownHostFault(id)
    if (fault === undefined && (known.has(id) || id.startsWith(BY_HOST))) return []
    const message = fault ?? unknownName('project', id, new Set([...known, `${BY_HOST}NAME`]))
    return { path: [...path, i], message }
  })
}

type ShareFault = UnplacedProblem & { readonly file: string }

/** Reports `enforceFor` in report-only mode, where it has no effect. */
export function checkShares(policies: readonly PolicyFile[]): ShareFault[] {
  return policies.flatMap(policy => {
    const { file } = policy
    if (isProjectLimits(policy)) return checkShare(policy.document, file, [])
    return policy.document.rules.flatMap((rule, i) => checkShare(rule, file, ['rules', i]))
  })
}

/** Reports `waiting` without `wait`. */
export function checkWaits(policies: readonly PolicyFile[]): FileFault[] {
  return policies.flatMap(policy => {
    const { file } = policy
    const faults = isProjectLimits(policy)
      ? Object.entries(policy.document.buckets).flatMap(([name, bucket]) =>
          waitFaults(bucket, ['buckets', name]),
        )
      : policy.kind === IN_FLIGHT
        ? policy.document.rules.flatMap((rule, i) => waitFaults(rule, ['rules', i]))
        : []
    return faults.map(fault => ({ file, ...fault }))
  })
}

function waitFaults(written: object, path: Path): UnplacedProblem[] {
  if (!('waiting' in written) || 'wait' in written) return []
  const message = '"waiting" has no effect without "wait": nobody waits. Add wait, or remove waiting.'
  return [{ path: [...path, 'waiting'], message }]
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
