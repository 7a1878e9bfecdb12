/** The project that a credential names, for identifiers whose issuer may know more projects than projects.yaml lists. */
import { isProjectId } from '../../config/words/words.js'
import type { Project, Tools } from '../plugin.js'

/** What a credential may say about a project that is not listed. Words that are not declared are ignored. */
export interface NamedColumn {
  readonly plan?: unknown
  readonly environment?: unknown
}

/** Whether `namedProjects` finds only listed projects. */
export function namesListedOnly(
  { projects }: { readonly projects: 'any' | 'known' },
  { unknown }: Pick<Tools, 'unknown'>,
): boolean {
  return projects === 'known' || unknown === undefined
}

/**
 * @param projects `known`: only those of projects.yaml
 * @returns the project without more than its id, plan and environment; or in a word or two why there is none
 */
export function namedProjects(
  projects: 'any' | 'known',
  {
    projects: list,
    plans,
    environments,
    unknown,
  }: Pick<Tools, 'projects' | 'plans' | 'environments' | 'unknown'>,
): (id: unknown, column?: NamedColumn) => Project | string {
  const listed = new Map(list.map(({ id, plan, environment }) => [id, { id, plan, environment }]))
  const declared = (word: unknown, words: readonly string[]) =>
    typeof word === 'string' && words.includes(word) ? word : undefined
  return (id, column = {}) => {
    if (id === undefined) return 'no project'
    if (typeof id !== 'string' || !isProjectId(id)) return 'project is no id'
    const known = listed.get(id)
    if (known !== undefined) return known
    if (unknown === undefined || projects === 'known') return 'project not listed'
    return {
      id,
      plan: declared(column.plan, plans) ?? unknown.plan,
      environment: declared(column.environment, environments) ?? unknown.environment,
    }
  }
}
