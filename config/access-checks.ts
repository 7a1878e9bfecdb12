/** What no schema can say of access entries. Pure. */
import { listed, nearest, type UnplacedProblem } from './problem.js'
import type { AccessPolicy } from './types.js'

/** Of requests of an unknown host; any there is. */
const BY_HOST = 'host:'

/** Projects that do not exist; nothing is said while nobody knows which do. */
export function checkAccess(
  files: readonly AccessPolicy[],
  projects: readonly { readonly id: string }[] | undefined,
): (UnplacedProblem & { readonly file: string })[] {
  if (projects === undefined) return []
  const ids = new Set(projects.map(({ id }) => id))
  return files.flatMap(({ file, document }) =>
    document.rules.flatMap(({ projects: named = [] }, i) =>
      named.flatMap((id, j) => {
        if (ids.has(id) || id.startsWith(BY_HOST)) return []
        return { file, path: ['rules', i, 'projects', j], message: unknownProject(id, [...ids]) }
      }),
    ),
  )
}

function unknownProject(id: string, known: readonly string[]): string {
  const meant = nearest(id, known)
  const help =
    meant === undefined ? `Must be ${listed([...known, 'host:NAME'])}.` : `Did you mean "${meant}"?`
  return `Unknown project "${id}". ${help}`
}
