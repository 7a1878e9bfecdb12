/** Checks of access entries that a schema cannot express. Pure. */
import { unknownProjects } from './project-names.js'
import type { FileFault } from './readable.js'
import type { ProjectEntry } from './schema.js'
import type { AccessPolicy } from './types.js'

/** Projects that do not exist; no faults while the declared projects are unknown. */
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
