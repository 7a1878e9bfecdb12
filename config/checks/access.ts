/** Checks of access entries that a schema cannot express. Pure. */

import type { FileFault } from '../readable.js'
import type { ProjectEntry } from '../schema/projects.js'
import type { AccessPolicy } from '../types.js'
import { unknownProjects } from './project-names.js'

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
