/**
 * Representative requests of a pattern: what holds for each of them holds for every request it matches (see
 * `witnessesOf`). Pure.
 */
import type { Pattern, Segment } from './pattern.js'

export interface SampleRequest {
  readonly method: string
  readonly path: string
}

/** Stands in a path for any segment that no pattern spells out: no literal may contain a space. */
const ANY_SEGMENT = ' '
/** Stands for all methods that no pattern names. */
export const ANY_METHOD = '*'

/** The methods that a set of patterns names, and how deep the patterns reach. */
export interface Extent {
  readonly methods: ReadonlySet<string>
  readonly depth: number
}

export function extentOf(patterns: Iterable<Pattern>): Extent {
  const methods = new Set<string>()
  let depth = 0
  for (const { method, segments } of patterns) {
    if (method !== undefined) methods.add(method)
    // HEAD counts as GET unless it is listed.
    if (method === 'GET') methods.add('HEAD')
    depth = Math.max(depth, segments.length)
  }
  return { methods, depth }
}

/**
 * One request for each way in which patterns of this extent can tell requests that `pattern` matches apart, as general
 * as possible: any pattern that matches such a request also matches every other that it stands for. So a pattern that
 * gets none of its samples gets no request at all.
 */
export function sampleRequestsOf({ method, segments }: Pattern, extent: Extent): SampleRequest[] {
  const methods =
    method === undefined ? [...extent.methods, ANY_METHOD] : method === 'GET' ? ['GET', 'HEAD'] : [method]
  return pathsOf(segments, extent.depth).flatMap(path => methods.map(one => ({ method: one, path })))
}

/** One level below the deepest pattern stands for all deeper ones. */
function pathsOf(segments: readonly Segment[], depth: number): string[] {
  const fixed: string[] = []
  for (const segment of segments) {
    if (segment.kind !== 'rest') fixed.push(segment.kind === 'literal' ? segment.text : ANY_SEGMENT)
  }
  if (fixed.length === segments.length) return [`/${fixed.join('/')}`]
  const more = Math.max(1, depth + 1 - fixed.length)
  return Array.from(
    { length: more + 1 },
    (_, i) => `/${[...fixed, ...Array<string>(i).fill(ANY_SEGMENT)].join('/')}`,
  )
}
