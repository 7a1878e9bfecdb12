/** Who an id stands for: a configured project, or an unknown caller. */
import { unknownHostFault } from '../../config/checks/rules.js'
import { networkText, parseAddress } from '../../config/words/address.js'
import {
  BY_CLIENT,
  BY_HOST,
  type CountUnknownBy,
  columnName,
  countsUnknownBy,
  isProjectId,
  isUnknownCaller,
  TOGETHER,
} from '../../config/words/words.js'
import { NotFound } from '../errors.js'
import { unknownCallers } from '../identify/unknown.js'
import { networkOf } from '../listen/client.js'
import type { Project } from '../types.js'
import type { Configuration } from './load.js'

/**
 * The project with an id: a configured one, or the unknown caller that the id stands for, such as `client:203.0.113.7`.
 * @throws {NotFound}
 */
export function projectOf({ config }: Configuration, id: string): Project {
  const project = config.projects.find(one => one.id === id)
  if (project !== undefined) return { id, plan: project.plan, environment: project.environment }
  const { unknownProject } = config.gateway
  const callerOf = unknownCallers(unknownProject, { countApart: () => true })
  if (callerOf === undefined || !isUnknownCaller(id)) throw noProject(id)
  const by = countsUnknownBy(unknownProject)
  const caller = callerNamed(id, by)
  if (caller === undefined) throw new NotFound(HOW_TO_NAME[by])
  return callerOf(caller)
}

/**
 * The project that an override is for. One that only credentials name may have any plan and environment: then it
 * is returned with one of each set of limits. Empty if no request can be of such a project.
 */
export function projectsNamed(loaded: Configuration, id: string): readonly Project[] {
  const { config, compiled } = loaded
  const listed = config.projects.find(one => one.id === id)
  if (listed !== undefined) return [{ id, plan: listed.plan, environment: listed.environment }]
  if (!isProjectId(id) || compiled.identifiers.every(one => one.listedOnly)) return []
  const columns = columnsApart.get(loaded) ?? [...columnsOfTables(loaded)]
  columnsApart.set(loaded, columns)
  return columns.map(column => ({ id, ...column }))
}

type Column = Pick<Project, 'plan' | 'environment'>
const columnsApart = new WeakMap<Configuration, readonly Column[]>()

/** One plan and environment for each table of limits. */
function* columnsOfTables({ config, compiled }: Configuration): Generator<Column> {
  const seen = new Set<object | undefined>()
  for (const plan of config.planWords.plans) {
    for (const environment of config.planWords.environments) {
      const table = compiled.policy.columns.get(columnName(plan, environment))
      if (!seen.has(table)) yield { plan, environment }
      seen.add(table)
    }
  }
}

/**
 * Checks that an access entry may name the id: a project, listed or such as credentials may name, or `host:NAME` for
 * unknown callers. @throws {NotFound}
 */
export function checkNamed(loaded: Configuration, id: string): void {
  const isHost = id.startsWith(BY_HOST) && loaded.config.gateway.unknownProject !== 'reject'
  if (!isHost && projectsNamed(loaded, id).length === 0) throw noProject(id)
}

function noProject(id: string): NotFound {
  return new NotFound(`There is no project "${id}" in this configuration.`)
}

const HOW_TO_NAME: Readonly<Record<CountUnknownBy, string>> = {
  client:
    'Unknown projects are counted by client address here: write client:ADDRESS, such as client:203.0.113.7.',
  host: 'Unknown projects are counted by host here: write host:NAME, such as host:example.com.',
  together: `Unknown projects are counted together here: write ${TOGETHER}.`,
}

/** What the id says of a caller that is counted `by` it; undefined if the id is not of that kind. */
function callerNamed(id: string, by: CountUnknownBy): { host: string; network: string } | undefined {
  if (by === 'together') return id === TOGETHER ? { host: '', network: '' } : undefined
  if (by === 'client') {
    const address = id.startsWith(BY_CLIENT) ? id.slice(BY_CLIENT.length).replace(/\/64$/, '') : ''
    const parsed = parseAddress(address)
    return parsed && { host: '', network: networkOf(networkText(parsed)) }
  }
  const fault = unknownHostFault(id)
  if (fault !== undefined) throw new NotFound(fault)
  return id.startsWith(BY_HOST) ? { host: id.slice(BY_HOST.length), network: '' } : undefined
}
