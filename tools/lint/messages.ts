/** Reports rules that count the messages of WebSockets where no request can open one. */
import { type Pattern, parsePattern } from '../../gateway/policy/pattern.js'
import type { Remark, Subject } from './lint.js'
import { meet } from './reach.js'

export function checkMessages({ rules, loaded }: Subject): Remark[] {
  const { routes } = loaded.config.gateway
  const forwarded = routes
    .filter(route => 'upstream' in route || 'split' in route)
    .map(({ path }) => parsePattern(path))
  return rules.flatMap(({ file, document }) =>
    document.rules.flatMap(({ id, count, match }, i): Remark[] => {
      if (count !== 'message') return []
      const why = uselessness(match.map(parsePattern), forwarded)
      if (why === undefined) return []
      const message = `Rule "${id}" counts the messages of WebSockets, ${why}, so it counts nothing.`
      return [{ severity: 'warning', file, path: ['rules', i, 'match'], message }]
    }),
  )
}

/** Why none of the patterns matches a request that opens a WebSocket, as part of a sentence. */
function uselessness(patterns: readonly Pattern[], forwarded: readonly Pattern[]): string | undefined {
  const opening = patterns.filter(({ method }) => method === undefined || method === 'GET')
  if (opening.length === 0) return 'which are opened with GET, and none of its patterns matches one'
  const leads = opening.some(({ segments }) => forwarded.some(route => meet(route.segments, segments)))
  return leads
    ? undefined
    : 'and no route leads from its patterns to an upstream, which would have to open one'
}
