/** One configuration, compiled into what the pipeline needs per request. Pure; used by `serve` and `check`. */
import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { hasOwnWords } from '../../config/checks/plans.js'
import { endOf } from '../../config/formats.js'
import { type AccessPolicy, type Config, problemAt } from '../../config/load.js'
import type { Problem } from '../../config/problem.js'
import type { UnknownProject } from '../../config/words/words.js'
import { identifyBy } from '../identify/identify.js'
import type { UnknownHosts } from '../identify/unknown.js'
import type { Walk } from '../pipeline/enter.js'
import type { PluginSet } from '../plugins.js'
import { Access, type AccessTable } from '../policy/access.js'
import { type AccessFile, compileAccess, networkFault } from '../policy/access-entries.js'
import { compilePolicy } from '../policy/compile.js'
import { sourceIn } from '../policy/documents.js'
import type { Fault } from '../policy/fault.js'
import { createPolicy, type ForNow, type Policy } from '../policy/policy.js'
import type { Log } from '../types.js'
import { credentialFaults } from './credentials.js'
import { type Made, makePlugins } from './plugins.js'
import { caseTies, upstreamReadings } from './upstream-readings.js'

export interface Compiled extends Made {
  readonly policy: Policy
  /** Entries of kind access. */
  readonly access: AccessTable
  /** What requests walk through; `unknownHosts` carries over what earlier configurations learned. */
  walk(unknownHosts?: Pick<UnknownHosts, 'countApart'>, access?: Access): Walk
  /** The same configuration with the modes and limits set on the admin port. */
  withOverrides(forNow: ForNow): Compiled
}

/**
 * Compiles a validated configuration; reports faults that only the matcher can find, such as ties. `isFinal` if another
 * configuration alone can mend them.
 */
export function compile(
  config: Config,
  plugins: PluginSet,
  log: Log,
): { compiled: Compiled } | { problems: Problem[]; isFinal: boolean } {
  const limitsReads = new Set(plugins.limit.filter(one => one.limitsReads).map(({ name }) => name))
  const { policy, faults } = compilePolicy(config, {
    revision: revisionOf(config),
    readings: upstreamReadings(config.gateway),
    limitsReads,
  })
  const access = compileAccess(config.access.map(accessFile), (file, path) => sourceIn(config, file, path))
  // Only if the patterns are valid: ties among them are already reported.
  const ties = faults.length === 0 ? caseTies(config) : []
  const problems = [
    ...faults,
    ...access.faults,
    ...ties,
    ...proxyFaults(config),
    ...credentialFaults(config, plugins),
  ].map(({ file, path, message }) => problemAt(config, file, path, message))
  if (problems.length > 0) return { problems, isFinal: true }
  const made = makePlugins(config, plugins, log)
  if ('problems' in made) return made
  return { compiled: compiledOf(made, policy, access.table, config.gateway.unknownProject) }
}

function compiledOf(
  made: Made,
  policy: Policy,
  access: AccessTable,
  unknownProject: UnknownProject,
): Compiled {
  const { identifiers } = made
  // Each scheme once, however many issuers there are.
  const challenges = [...new Set(identifiers.flatMap(({ challenge }) => challenge ?? []))]
  return {
    ...made,
    policy,
    access,
    walk: (unknownHosts, asked = new Access(access)) => ({
      policy,
      access: asked,
      identify: identifyBy(identifiers, unknownProject, unknownHosts),
      challenges,
    }),
    withOverrides: forNow => {
      const table = forNow.modes?.access(access) ?? access
      return compiledOf(made, createPolicy(policy.parts, forNow), table, unknownProject)
    },
  }
}

function accessFile({ file, document }: AccessPolicy): AccessFile {
  const rules = document.rules.map(({ until, ...rule }) => ({
    ...rule,
    until: until === undefined ? undefined : endOf(until),
  }))
  return { file, rules }
}

/**
 * Changes with everything that affects the decision about a request or its destination, but not with the listen
 * addresses.
 */
function revisionOf({ gateway, projects, planWords, policies, access }: Config): string {
  const { identify, unknownProject, trustedProxies, fingerprintHeaders, credentials } = gateway
  const { store, routes, closed, quotaPath, upstreams } = gateway
  const rules = [...policies, ...access].map(({ file, document }) => [basename(file), document])
  const callers = [projects, identify, unknownProject, trustedProxies, fingerprintHeaders, credentials]
  // Selectors without plans or environments stand for all declared words, so these count too.
  const declared = hasOwnWords(planWords) ? [planWords] : []
  const added = [
    ...(closed.length > 0 ? [{ closed }] : []),
    ...(quotaPath ? [{ quotaPath }] : []),
    ...declared,
  ]
  const text = JSON.stringify([rules, callers, store.onError, routes, upstreams, ...added], sorted)
  return `sha256:${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}

/** The order in which keys are written, or filled in by default, changes nothing. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Trusted proxies that may be mistakes: an address with a prefix would trust its whole network. */
function proxyFaults({ gateway, gatewayFile }: Config): Fault[] {
  return gateway.trustedProxies.flatMap((cidr, i) => {
    const message = networkFault(cidr)
    return message === undefined ? [] : { file: gatewayFile, path: ['trustedProxies', i], message }
  })
}
