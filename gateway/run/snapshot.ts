/** One configuration, compiled: what the pipeline asks of it per request. Pure; serves `serve` and `check` alike. */
import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { type Config, isProjectLimits, problemAt, type RulesPolicy } from '../../config/load.js'
import type { Problem } from '../../config/problem.js'
import { identifyBy, type UnknownHosts } from '../identify/identify.js'
import { TrustedProxies } from '../listen/client.js'
import type { Snapshot, Upstream } from '../pipeline/pipeline.js'
import type { Observer } from '../plugin.js'
import type { PluginSet } from '../plugins.js'
import { compilePolicy, type Fault, type Tables } from '../policy/compile.js'
import { foldPattern, PatternError, parsePattern } from '../policy/pattern.js'
import { PathTrie } from '../policy/trie.js'
import { readForUpstream } from '../policy/upstream-paths.js'
import type { Facts, Log } from '../types.js'
import { makePlugins, type NamedIdentifier } from './make-plugins.js'
import { caseTies, pathReadings } from './path-readings.js'

/** A snapshot whose routes still name their upstreams. */
export interface Compiled {
  readonly revision: string
  /** Path segments that patterns and routes spell out: what a log may show of a path. */
  readonly words: ReadonlySet<string>
  /** For those who tell of the policy; the pipeline asks the snapshot. */
  readonly tables: Tables
  readonly routes: PathTrie<string>
  /** The facts as they are matched and counted for an upstream. @throws {GatewayError} when its path cannot be */
  readFor(facts: Facts, upstream: string): Facts
  /** In the order in which they are asked. */
  readonly identifiers: readonly NamedIdentifier[]
  /** Tells the plugins that observe; they cannot make it throw. */
  readonly observer: Observer
  /** Joins the compiled configuration with the upstreams, by name, and with what earlier ones have learnt. */
  snapshot(upstreams: ReadonlyMap<string, Upstream>, unknownHosts?: UnknownHosts): Snapshot
  /** Gives back what its plugins hold. */
  close(): Promise<void>
}

/** Compiles what the loader found valid; reports what only the matcher can know, such as ties. */
export function compile(
  config: Config,
  plugins: PluginSet,
  log: Log,
): { compiled: Compiled } | { problems: Problem[] } {
  const revision = revisionOf(config)
  const limitsReads = new Set(plugins.limit.filter(one => one.limitsReads).map(({ name }) => name))
  const { policy, tables, faults } = compilePolicy({
    projectsFile: config.projectsFile,
    projects: config.projects,
    projectLimits: config.policies.filter(isProjectLimits).map(({ file, document }) => ({
      ...document,
      file,
      onStoreError: document.onStoreError ?? config.gateway.store.onError,
    })),
    endpointRules: config.policies
      .filter((policy): policy is RulesPolicy => !isProjectLimits(policy))
      .map(({ file, kind, document }) => ({
        file,
        kind,
        limitsReads: limitsReads.has(kind),
        rules: document.rules.map(rule => ({
          ...rule,
          onStoreError: rule.onStoreError ?? config.gateway.store.onError,
        })),
      })),
    sourceOf: (file, path) => ({ file, line: config.locate(file, path).line }),
  })
  const { routes, faults: routeFaults } = compileRoutes(config)
  // Only where the patterns are sound: what ties as it stands is said already.
  const ties = faults.length === 0 ? caseTies(config) : []
  const problems = [...faults, ...routeFaults, ...ties, ...proxyFaults(config)].map(
    ({ file, path, message }) => problemAt(config, file, path, message),
  )
  if (problems.length > 0) return { problems }
  const made = makePlugins(config, plugins, log)
  if ('problems' in made) return made
  const { identifiers, observer } = made
  const readings = pathReadings(config.gateway)
  const readFor = (facts: Facts, upstream: string) => readForUpstream(facts, readings.get(upstream))
  return {
    compiled: {
      revision,
      words: wordsOf(config),
      tables,
      routes,
      readFor,
      identifiers,
      observer,
      snapshot: (upstreams, unknownHosts) => ({
        revision,
        identify: identifyBy(
          identifiers.map(({ identifier }) => identifier),
          config.gateway.unknownProject,
          unknownHosts,
        ),
        route: facts => upstreams.get(routes.find(facts.method, facts.path)?.value ?? ''),
        readFor,
        match: (facts, project) => policy.match(facts, project),
      }),
      close: () => made.close(),
    },
  }
}

/** Changes when anything changes that decides about a request; not with ports or addresses. */
function revisionOf({ gateway, projects, policies }: Config): string {
  const { identify, unknownProject, trustedProxies, fingerprintHeaders, store } = gateway
  const rules = policies.map(({ file, document }) => [basename(file), document])
  const callers = [projects, identify, unknownProject, trustedProxies, fingerprintHeaders]
  const text = JSON.stringify([rules, callers, store.onError, ...pathReadings(gateway)])
  return `sha256:${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}

function wordsOf({ gateway, policies }: Config): Set<string> {
  const patterns = policies.flatMap(policy =>
    isProjectLimits(policy)
      ? Object.values(policy.document.buckets).flat()
      : policy.document.rules.flatMap(rule => rule.match),
  )
  const paths = [...patterns, ...gateway.routes.map(route => route.path)]
  const segments = paths.flatMap(path => {
    const pattern = parsePattern(path)
    return [...pattern.segments, ...foldPattern(pattern).segments]
  })
  return new Set(segments.flatMap(segment => (segment.kind === 'literal' ? segment.text : [])))
}

function compileRoutes({ gateway, gatewayFile }: Config): { routes: PathTrie<string>; faults: Fault[] } {
  const routes = new PathTrie<string>()
  const faults: Fault[] = []
  for (const [i, { path, upstream }] of gateway.routes.entries()) {
    const fault = (message: string) =>
      faults.push({ file: gatewayFile, path: ['routes', i, 'path'], message })
    try {
      const tie = routes.add(parsePattern(path), upstream)
      if (tie !== undefined) fault(`The path "${path}" ties with "${tie.route}", which is routed already.`)
    } catch (error) {
      if (!(error instanceof PatternError)) throw error
      fault(error.message)
    }
  }
  return { routes, faults }
}

/** What the listener would refuse at the start is refused here, so that a check says all of it. */
function proxyFaults({ gateway, gatewayFile }: Config): Fault[] {
  return gateway.trustedProxies.flatMap((cidr, i) => {
    try {
      new TrustedProxies([cidr])
      return []
    } catch (error) {
      return { file: gatewayFile, path: ['trustedProxies', i], message: (error as Error).message }
    }
  })
}
