/** Checks the projects and hosts named in rules, access entries and routes. */
import type { Path, UnplacedProblem } from '../problem.js'
import { unknownName } from '../readable.js'
import { HOST_NAME_PATTERN, type ProjectEntry } from '../schema/projects.js'
import { BY_CLIENT, BY_HOST } from '../words/words.js'

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
export function unknownProjects(
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
