/** Requests that fall into another bucket under one configuration than under another. */
import { describeColumns } from '../../../config/checks/columns.js'
import { columnsOf, type PlanWords } from '../../../config/words/words.js'
import type { Configuration } from '../../configured/load.js'
import { type Pattern, parsePattern } from '../../policy/pattern.js'
import { ANY_METHOD, extentOf, sampleRequestsOf } from '../../policy/sample-requests.js'
import type { Mode } from '../../types.js'

/** Requests that fall into another bucket; null means that nothing limits them. */
export interface MovedRequests {
  readonly mode: Mode
  readonly requests: string
  readonly from: string | null
  readonly to: string | null
  /** The plans and environments, in words. */
  readonly for: string
}

/** Looks up every request that the patterns can tell apart in both; a bucket of null means that nothing limits it. */
export function movedRequests(before: Configuration, after: Configuration): MovedRequests[] {
  return [...movedWithin('enforce', before, after), ...movedWithin('report-only', before, after)]
}

function movedWithin(mode: Mode, before: Configuration, after: Configuration): MovedRequests[] {
  const patterns = [...patternsOf(before), ...patternsOf(after)]
  const extent = extentOf(patterns)
  const words = sharedWords(before.config.planWords, after.config.planWords)
  const shared = columnsOf([{}], words)
  const asked = new Set<string>()
  const moves = new Map<
    string,
    { from: string | null; to: string | null; columns: Set<string>; requests: string }
  >()
  for (const pattern of patterns) {
    for (const { method, path } of sampleRequestsOf(pattern, extent)) {
      // Of two patterns that match the same, the first stands for both.
      const name = `${method} ${path}`
      if (asked.has(name)) continue
      asked.add(name)
      for (const column of shared) {
        const from = bucketOf(before, mode, column, method, path)
        const to = bucketOf(after, mode, column, method, path)
        if (from === to) continue
        const requests = labelOf(pattern, method)
        const key = JSON.stringify([requests, from, to])
        const move = moves.get(key) ?? { requests, from, to, columns: new Set() }
        move.columns.add(column)
        moves.set(key, move)
      }
    }
  }
  return withoutSpecial([...moves.values()]).map(({ columns, ...move }) => ({
    mode,
    ...move,
    for: describeColumns(columns, words),
  }))
}

/** The plans and environments of both: requests of one that was added or removed have not moved. */
function sharedWords(one: PlanWords, other: PlanWords): PlanWords {
  return {
    plans: one.plans.filter(plan => other.plans.includes(plan)),
    environments: one.environments.filter(environment => other.environments.includes(environment)),
  }
}

function patternsOf({ compiled }: Configuration): Pattern[] {
  return compiled.policy.buckets.flatMap(({ patterns }) => patterns.map(parsePattern))
}

function bucketOf(
  { compiled }: Configuration,
  mode: Mode,
  column: string,
  method: string,
  path: string,
): string | null {
  return compiled.policy.columns.get(column)?.buckets[mode].find(method, path)?.value ?? null
}

/** The pattern's text; of a pattern for all methods, with the method in question if it is a particular one. */
function labelOf({ method, text }: Pattern, asked: string): string {
  const path = text === '*' ? '/**' : text
  return method === undefined && asked !== ANY_METHOD
    ? `${asked} ${path}`
    : method === 'GET' && asked === 'HEAD'
      ? path.replace('GET', 'HEAD')
      : path
}

/** If all methods moved alike, one line says so; HEAD is left out if GET moved the same way. */
function withoutSpecial<
  M extends { requests: string; from: string | null; to: string | null; columns: Set<string> },
>(moves: readonly M[]): M[] {
  const isLike = (a: M, b: M) =>
    a.from === b.from && a.to === b.to && [...a.columns].every(column => b.columns.has(column))
  const byRequests = new Map<string, M[]>()
  for (const move of moves) {
    const alike = byRequests.get(move.requests) ?? []
    alike.push(move)
    byRequests.set(move.requests, alike)
  }
  return moves.filter(move => {
    const [method, path] = move.requests.split(' ')
    if (path === undefined) return true
    const general = method === 'HEAD' ? [path, `GET ${path}`] : [path]
    return !general.some(name => byRequests.get(name)?.some(other => isLike(move, other)))
  })
}
