/** Compiles policy files into one immutable policy, looked up per request. Reports all faults, each by its place. */
import { patternsOf } from '../../config/words/bucket.js'
import { checkCosts, type KnownBuckets, readBuckets } from './buckets.js'
import { compileRoutes } from './compile-routes.js'
import { type PolicyConfig, projectLimitsIn } from './documents.js'
import { compileEndpointRules } from './endpoint-rules.js'
import { type Fault, readPattern } from './fault.js'
import { checkLifetimes } from './lifetime.js'
import { compileColumns, compileOverrides, rollOut } from './limits.js'
import { NegotiatedLimits } from './negotiated.js'
import { createPolicy, type EndpointRule, type Policy } from './policy.js'
import { Tries } from './tries.js'
import type { UpstreamReading } from './upstream-reading.js'

export interface PolicyOptions {
  readonly revision: string
  /** How upstreams read requests, by name of the upstream; only those that do not read them as they are matched. */
  readonly readings: ReadonlyMap<string, UpstreamReading>
  /** Kinds whose rules also apply to GET, HEAD and OPTIONS. */
  readonly limitsReads: ReadonlySet<string>
}

/** Compiles the policy files; when `faults` is not empty the policy must not be used. */
export function compilePolicy(
  config: PolicyConfig,
  { revision, readings, limitsReads }: PolicyOptions,
): { policy: Policy; faults: Fault[] } {
  const faults: Fault[] = []
  const projectLimits = projectLimitsIn(config)
  const buckets = readBuckets(projectLimits, faults)
  const tries = new Tries(buckets)
  const columns = compileColumns(config, buckets, tries)
  const negotiated = new NegotiatedLimits(config, buckets, tries)
  const projects = compileOverrides(config, negotiated, columns, faults)
  checkLifetimes(config, buckets, faults)
  checkCosts([...columns.values(), ...projects.values()], buckets, faults)
  const { rules, endpoint } = compileEndpointRules(config, limitsReads, faults)
  const policy = createPolicy({
    revision,
    columns: rollOut(columns, tries, config),
    projects: rollOut(projects, tries, config),
    negotiated,
    buckets: projectLimits.flatMap(({ document: { mode, buckets } }) =>
      Object.entries(buckets).map(([name, entry]) => ({
        name,
        patterns: patternsOf(entry, []).map(({ text }) => text),
        mode,
      })),
    ),
    rules,
    endpoint,
    routes: compileRoutes(config, readings, faults),
    words: wordsOf(buckets, rules, config),
    readings,
  })
  return { policy, faults }
}

function wordsOf(
  buckets: KnownBuckets,
  rules: readonly EndpointRule[],
  { gateway }: PolicyConfig,
): Set<string> {
  const paths = [...rules.flatMap(({ match }) => match), ...gateway.routes.map(({ path }) => path)]
  if (gateway.quotaPath !== undefined) paths.push(gateway.quotaPath)
  // Faults of these patterns are reported where they are compiled.
  const others = paths.flatMap(path => readPattern(path, '', [], []) ?? [])
  const words = new Set<string>()
  const own = [...buckets.values()].flatMap(({ patterns }) => patterns)
  for (const { segments } of [...own, ...others]) {
    for (const segment of segments) {
      // In lowercase, too: some upstreams ignore letter case.
      if (segment.kind === 'literal') words.add(segment.text).add(segment.text.toLowerCase())
    }
  }
  return words
}
