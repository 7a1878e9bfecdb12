/** The conditions of a rule's `when`, as tests that are cheap for every request. Pure. */

import { createNetworks } from '../../config/words/networks.js'
import type { Condition, Project } from '../types.js'

/** `when` as written; what is left out holds for every request. */
export interface WrittenWhen {
  readonly authenticated?: boolean | 'verified' | undefined
  readonly projects?: readonly string[] | undefined
  readonly plans?: readonly string[] | undefined
  readonly environments?: readonly string[] | undefined
  readonly networks?: readonly string[] | undefined
}

/** The conditions, all of which must hold, the cheapest first; undefined if there are none. */
export function compileWhen(when: WrittenWhen): readonly Condition[] | undefined {
  const { authenticated, projects, plans, environments, networks } = when
  const conditions: Condition[] = []
  if (projects !== undefined) conditions.push(oneOf('projects', projects, ({ id, alias }) => alias ?? id))
  if (plans !== undefined) conditions.push(oneOf('plans', plans, ({ plan }) => plan))
  if (environments !== undefined) {
    conditions.push(oneOf('environments', environments, ({ environment }) => environment))
  }
  if (authenticated === 'verified') {
    conditions.push({ on: 'authenticated', holds: (_, { verified = false }) => verified })
  } else if (authenticated !== undefined) {
    conditions.push({ on: 'authenticated', holds: facts => facts.authenticated === authenticated })
  }
  if (networks !== undefined) {
    const holdsAddress = createNetworks(networks)
    conditions.push({ on: 'networks', holds: ({ client }) => holdsAddress(client) })
  }
  return conditions.length === 0 ? undefined : conditions
}

function oneOf(
  on: Condition['on'],
  words: readonly string[],
  wordOf: (project: Project) => string,
): Condition {
  const set = new Set(words)
  return { on, holds: (_, project) => set.has(wordOf(project)) }
}
