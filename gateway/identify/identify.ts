/** Asks the identifiers in their written order, and says what becomes of a project nobody knows. */

import { columnOfUnknown, type UnknownProject } from '../../config/words.js'
import { GatewayError } from '../errors.js'
import type { Identifier } from '../plugin.js'
import type { Facts, Log, Project } from '../types.js'

/** Unknown hosts that are counted apart; the rest share one counter, or every made-up Host would bring fresh quota. */
const MOST_UNKNOWN_HOSTS = 100

/** The hosts of no project that are counted apart. Outlives a reload, or each would bring made-up ones fresh quota. */
export class UnknownHosts {
  readonly #names = new Set<string>()

  /** True when the host is counted apart. */
  takesApart(host: string): boolean {
    if (this.#names.size < MOST_UNKNOWN_HOSTS) this.#names.add(host)
    return this.wouldTakeApart(host)
  }

  /** The same, without taking note of the host. */
  wouldTakeApart(host: string): boolean {
    return this.#names.size < MOST_UNKNOWN_HOSTS || this.#names.has(host)
  }
}

/**
 * The same identifier, but one that throws has not identified anybody: the next one is asked.
 *
 * @param verifies whether whom it finds has shown a credential that it checked
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
 * @param unknownProject what a request that nobody identified counts under, by its host; or `reject`
 * @returns a function that throws GatewayError('unknown-project') where unknown projects are rejected
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

/** Keeps a made-up host from passing for a configured project. */
export const BY_HOST = 'host:'

/** Whom requests of an unknown host are counted for. */
export function unknownHostProject(name: string, { plan, environment }: Omit<Project, 'id'>): Project {
  return { id: BY_HOST + name, plan, environment }
}
