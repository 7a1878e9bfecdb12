/** Reports patterns that no request can reach: others take all their requests, or no route leads there. */

import type { Path } from '../../config/problem.js'
import { patternsOf } from '../../config/words/bucket.js'
import { type Pattern, parsePattern, type Segment } from '../../gateway/policy/pattern.js'
import type { Table } from '../../gateway/policy/policy.js'
import { type Extent, extentOf, sampleRequestsOf } from '../../gateway/policy/sample-requests.js'
import { variantsOf } from '../../gateway/policy/shares-and-trials.js'
import { listTakers, takersOf } from '../../gateway/policy/takers.js'
import type { Remark, Subject } from './lint.js'

interface Written {
  readonly file: string
  readonly path: Path
  readonly pattern: Pattern
}

export function checkReach(subject: Subject): Remark[] {
  const { columns, projects } = subject.loaded.compiled.policy
  const buckets = bucketPatterns(subject)
  const rules = rulePatterns(subject)
  const written = routePatterns(subject)
  const extent = extentOf([...buckets, ...rules, ...written].map(({ pattern }) => pattern))
  const all = [...columns.values(), ...projects.values()].flatMap(table => [...variantsOf(table)])
  return [
    ...[...buckets, ...rules].flatMap(one => unrouted(one, written)),
    ...buckets.flatMap(one => shadowedPattern(one, all, extent)),
  ]
}

function bucketPatterns({ limits }: Subject): (Written & { readonly bucket: string })[] {
  return limits.flatMap(({ file, document }) =>
    Object.entries(document.buckets).flatMap(([bucket, entry]) =>
      patternsOf(entry, ['buckets', bucket]).map(({ text, path }) => ({
        file,
        path,
        pattern: parsePattern(text),
        bucket,
      })),
    ),
  )
}

function rulePatterns({ rules }: Subject): Written[] {
  return rules.flatMap(({ file, document }) =>
    document.rules.flatMap(({ match }, i) =>
      match.map((text, j) => ({ file, path: ['rules', i, 'match', j], pattern: parsePattern(text) })),
    ),
  )
}

function routePatterns({ loaded: { config } }: Subject): Written[] {
  return config.gateway.routes.map(({ path }, i) => ({
    file: config.gatewayFile,
    path: ['routes', i, 'path'],
    pattern: parsePattern(path),
  }))
}

/** One routed request is enough: a catch-all may well be wider than all routes. */
function unrouted({ file, path, pattern }: Written, routes: readonly Written[]): Remark[] {
  if (routes.some(route => meet(route.pattern.segments, pattern.segments))) return []
  const message = `No route leads to "${pattern.text}": its requests are answered 404 before anything is counted.`
  return [{ severity: 'warning', file, path, message }]
}

/** True when some path matches both. */
export function meet(a: readonly Segment[], b: readonly Segment[]): boolean {
  for (let i = 0; ; i++) {
    const [one, other] = [a[i], b[i]]
    if (one?.kind === 'rest' || other?.kind === 'rest') return true
    if (one === undefined || other === undefined) return one === other
    if (one.kind === 'literal' && other.kind === 'literal' && one.text !== other.text) return false
  }
}

function shadowedPattern(
  { file, path, pattern, bucket }: Written & { readonly bucket: string },
  tables: readonly Table[],
  extent: Extent,
): Remark[] {
  const samples = sampleRequestsOf(pattern, extent)
  const takers = new Set<string>()
  for (const { rules, buckets } of tables) {
    const mode = rules.get(bucket)?.mode
    if (mode === undefined) continue
    const here = takersOf(samples, buckets[mode], pattern)
    if (here === undefined) return []
    for (const taker of here) takers.add(taker)
  }
  if (takers.size === 0) return []
  const message = `No request can fall under "${pattern.text}": wherever bucket "${bucket}" has a quota, ${listTakers(takers)} more specific and takes it first.`
  return [{ severity: 'warning', file, path, message }]
}
