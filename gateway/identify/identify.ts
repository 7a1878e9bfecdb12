/** Asks the identifiers in their configured order, and handles requests that none of them identifies. */

import { columnOfUnknown, type UnknownProject } from '../../config/words.js'
import { GatewayError } from '../errors.js'
import type { Identifier } from '../plugin.js'
import type { Facts, Log, Project } from '../types.js'

/** Most unknown hosts with a counter of their own; all others share one, or each made-up Host would get a new quota. */
const MOST_UNKNOWN_HOSTS = 100

/** Unknown hosts with a counter of their own. Kept across reloads, or each would give made-up hosts new quota. */
export class UnknownHosts {
  readonly #names = new Set<string>()

  /** True if the host has a counter of its own; remembers the host while there are few. */
  takesApart(host: string): boolean {
    if (this.#names.size < MOST_UNKNOWN_HOSTS) this.#names.add(host)
    return this.wouldTakeApart(host)
  }

  /** The same, without remembering the host. */
  wouldTakeApart(host: string): boolean {
    return this.#names.size < MOST_UNKNOWN_HOSTS || this.#names.has(host)
  }
}

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
 * @param unknownProject plan and environment for a request that is not identified, counted by host; or `reject`
 * @returns a function that throws GatewayError('unknown-project') if unknown projects are rejected
 */
export function identifyBy(
  identifiers: readonly Identifier[],
  unknownProject: UnknownProject,
  unknownHosts: Pick<UnknownHosts, 'takesApart'> = new UnknownHosts(),
): (facts: Facts) => Project {
  const column = columnOfUnknown(unknownProject)
  return facts => {
    for (const identifier of identifiers) {
      const project = identifier.identify(facts)
      if (project !== undefined) return project
    }
    if (column === undefined) throw new GatewayError('unknown-project')
    const { host } = facts
    return unknownHosts.takesApart(host)
      ? unknownHostProject(host, column)
      : { ...unknownHostProject('others', column), alias: BY_HOST + host }
  }
}

/** Prefix that keeps the id of a made-up host apart from those of configured projects. */
export const BY_HOST = 'host:'

/** The project that requests to an unknown host count for. */
export function unknownHostProject(name: string, { plan, environment }: Omit<Project, 'id'>): Project {
  return { id: BY_HOST + name, plan, environment }
}
