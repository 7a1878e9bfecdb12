/** Why a negotiated limit cannot be set, or has no effect under the files that are in force. */
import { unknownName } from '../../config/problem.js'
import { isUnknownCaller } from '../../config/words/words.js'
import type { Configuration } from '../configured/load.js'
import { projectsNamed } from '../configured/projects.js'
import { Unnamed } from '../errors.js'
import type { QuotaForNow } from '../policy/quotas.js'
import type { QuotaName } from './quota-id.js'

/** Why nothing is counted by the limit, as a sentence; undefined if it is in force for some requests at least. */
export function quotaFault(limit: QuotaForNow, loaded: Configuration): string | undefined {
  const faults = projectsNamed(loaded, limit.project).map(project =>
    loaded.compiled.policy.faultOfLimit(project, limit),
  )
  if (faults.length === 0) return `No project is called "${limit.project}" now.`
  return faults.includes(undefined) ? undefined : faults[0]
}

/** @throws {Unnamed} when the limit could not be set, with the name that was probably meant */
export function checkQuota(limit: QuotaForNow, loaded: Configuration): void {
  const unknown = nameFault(limit, loaded)
  if (unknown !== undefined) throw new Unnamed(unknown)
  for (const project of projectsNamed(loaded, limit.project)) {
    const fault = loaded.compiled.policy.faultOfLimit(project, limit)
    if (fault !== undefined) throw new Unnamed(fault)
  }
}

/** Which of both names is unknown, as a sentence with the one that was probably meant. */
export function nameFault({ project, bucket }: QuotaName, loaded: Configuration): string | undefined {
  const { buckets } = loaded.compiled.policy.parts.negotiated
  if (!buckets.has(bucket)) return unknownName('bucket', bucket, buckets)
  if (projectsNamed(loaded, project).length > 0) return undefined
  return unknownProject(project, loaded.config.projects)
}

function unknownProject(id: string, projects: readonly { readonly id: string }[]): string {
  if (isUnknownCaller(id)) {
    return `"${id}" is a caller without a project, and these have the limits of unknownProject: list a project in projects.yaml, or deny or exempt it by PUT /access/NAME.`
  }
  return unknownName('project', id, new Set(projects.map(one => one.id)))
}
