/** Compiles policy files into one immutable policy, looked up per request. Reports all faults, each by its place. */
import { patternsOf } from '../../config/words/bucket.js'
import { checkCosts, type KnownBuckets, readBuckets } from './buckets.js'
import { compileEndpointRules } from './endpoint-rules.js'
import { type Fault, readPattern } from './fault.js'
import type { PolicyInput } from './input.js'
import { compileColumns, compileOverrides, rollOut } from './limits.js'
import { createPolicy, type Policy } from './policy.js'
import { Routes } from './routes.js'
import { Tries } from './tries.js'

/** Compiles the policy files; when `faults` is not empty the policy must not be used. */
export function compilePolicy(input: PolicyInput): { policy: Policy; faults: Fault[] } {
  const faults: Fault[] = []
  const buckets = readBuckets(input.projectLimits, faults)
  const tries = new Tries(buckets)
  const columns = compileColumns(input, buckets, tries)
  const projects = compileOverrides(input, buckets, tries, columns, faults)
  checkCosts([...columns.values(), ...projects.values()], buckets, faults)
  const { rules, endpoint } = compileEndpointRules(input, faults)
  const policy = createPolicy({
    revision: input.revision,
    columns: rollOut(columns, tries, input),
    projects: rollOut(projects, tries, input),
    buckets: input.projectLimits.flatMap(({ mode, buckets }) =>
      Object.entries(buckets).map(([name, entry]) => ({
        name,
        patterns: patternsOf(entry, []).map(({ text }) => text),
        mode,
      })),
    ),
    rules,
    endpoint,
    routes: compileRoutes(input, faults),
    words: wordsOf(buckets, input),
    readings: input.readings,
  })
  return { policy, faults }
}

function compileRoutes({ routes, closed = [], routesFile: file }: PolicyInput, faults: Fault[]): Routes {
  const compiled = new Routes(closed)
  for (const [i, { host, path: text, upstream }] of routes.entries()) {
    const path = ['routes', i, 'path']
    const pattern = readPattern(text, file, path, faults)
    const tie = pattern && compiled.of(host).add(pattern, upstream)
    if (tie === undefined) continue
    faults.push({
      file,
      path,
      message: `The path "${text}" ties with "${tie.route}", which is routed already.`,
    })
  }
  return compiled
}

function wordsOf(buckets: KnownBuckets, { endpointRules, routes }: PolicyInput): Set<string> {
  const paths = [
    ...endpointRules.flatMap(({ rules }) => rules.flatMap(({ match }) => match)),
    ...routes.map(({ path }) => path),
  ]
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
