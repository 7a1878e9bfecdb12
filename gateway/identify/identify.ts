/** Asks the identifiers in their written order, and says what becomes of a project nobody knows. */
import { GatewayError } from '../errors.js'
import type { Identifier } from '../plugin.js'
import type { Facts, Plan, Project } from '../types.js'

/**
 * @param unknownProject the plan of a request that nobody identified, counted by its host; or `reject`
 * @returns a function that throws GatewayError('unknown-project') where unknown projects are rejected
 */
export function identifyBy(
  identifiers: readonly Identifier[],
  unknownProject: Plan | 'reject',
): (facts: Facts) => Project {
  return facts => {
    for (const identifier of identifiers) {
      const project = identifier.identify(facts)
      if (project !== undefined) return project
    }
    if (unknownProject === 'reject') throw new GatewayError('unknown-project')
    // The prefix keeps a made-up host from passing for a configured project.
    return { id: `host:${facts.host.replace(/[[\]]/g, '')}`, plan: unknownProject, environment: 'production' }
  }
}
