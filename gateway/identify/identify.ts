/** Asks the identifiers in their configured order, and handles requests that none of them identifies. */

import type { UnknownProject } from '../../config/words/words.js'
import { GatewayError } from '../errors.js'
import type { Identifier } from '../plugin.js'
import type { Facts, Log, Project } from '../types.js'
import { UnknownHosts, unknownCallers } from './unknown.js'

/**
 * Wraps an identifier so that an exception counts as "not identified", and the next identifier is asked.
 *
 * @param verifies whether the identifier finds projects by credentials that it checks
 */
export function contained(
  plugin: string,
  identifier: Identifier,
  log: Log,
  verifies: boolean | undefined,
): Identifier {
  return {
    identify(facts) {
      try {
        const project = identifier.identify(facts)
        return project !== undefined && verifies ? verified(project) : project
      } catch (error) {
        log.warn({ err: error, plugin, id: facts.id }, 'an identifier failed; the next one was asked')
        return undefined
      }
    },
    close: async () => identifier.close?.(),
  }
}

function verified({ id, plan, environment }: Project): Project {
  return { id, plan, environment, verified: true }
}

/**
 * @param unknownProject whom a request counts for that is not identified; or `reject`
 * @returns a function that throws GatewayError('unknown-project') if unknown projects are rejected
 */
export function identifyBy(
  identifiers: readonly Identifier[],
  unknownProject: UnknownProject,
  unknownHosts: Pick<UnknownHosts, 'countApart'> = new UnknownHosts(),
): (facts: Facts) => Project {
  const callerOf = unknownCallers(unknownProject, unknownHosts)
  return facts => {
    for (const identifier of identifiers) {
      const project = identifier.identify(facts)
      if (project !== undefined) return project
    }
    if (callerOf === undefined) throw new GatewayError('unknown-project')
    return callerOf(facts)
  }
}
