/** Projects that rules and access entries name. */
import type { Path, UnplacedProblem } from './problem.js'
import { unknownName } from './readable.js'
import type { ProjectEntry } from './schema.js'

/** Of requests of an unknown host, which need no declaration: they are counted as `host:NAME`. */
const BY_HOST = 'host:'

/** Those of `named` that do not exist, each at its place in the list at `path`. */
export function unknownProjects(
  named: readonly string[] = [],
  projects: readonly ProjectEntry[],
  path: Path,
): UnplacedProblem[] {
  if (named.length === 0) return []
  const known = new Set(projects.map(({ id }) => id))
  return named.flatMap((id, i) => {
    if (known.has(id) || id.startsWith(BY_HOST)) return []
    const message = unknownName('project', id, new Set([...known, `${BY_HOST}NAME`]))
    return { path: [...path, i], message }
  })
}
