/** Asks the identifiers in their written order, and says what becomes of a project nobody knows. */
import { GatewayError } from '../errors.js'
import type { Identifier } from '../plugin.js'
import type { Facts, Plan, Project } from '../types.js'

/** Unknown hosts that are counted apart; the rest share one counter, or every made-up Host would bring fresh quota. */
const MOST_UNKNOWN_HOSTS = 100

/**
 * @param unknownProject the plan of a request that nobody identified, counted by its host; or `reject`
 * @returns a function that throws GatewayError('unknown-project') where unknown projects are rejected
 */
export function identifyBy(
  identifiers: readonly Identifier[],
  unknownProject: Plan | 'reject',
): (facts: Facts) => Project {
  const unknownHosts = new Set<string>()
  return facts => {
    for (const identifier of identifiers) {
      const project = identifier.identify(facts)
      if (project !== undefined) return project
    }
    if (unknownProject === 'reject') throw new GatewayError('unknown-project')
    if (unknownHosts.size < MOST_UNKNOWN_HOSTS) unknownHosts.add(facts.host)
    const host = unknownHosts.has(facts.host) ? facts.host.replace(/[[\]]/g, '') : 'others'
    // The prefix keeps a made-up host from passing for a configured project.
    return { id: `host:${host}`, plan: unknownProject, environment: 'production' }
  }
}
