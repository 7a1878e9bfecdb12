/** Asks each limit plugin for the demands of its rules before any traffic does. */
import { problemAt } from '../../config/load.js'
import type { Problem } from '../../config/problem.js'
import { factsOf } from '../listen/written.js'
import type { Limiter } from '../plugin.js'
import { ruleFilesIn } from '../policy/documents.js'
import type { EndpointRule } from '../policy/policy.js'
import type { Facts } from '../types.js'
import type { Configuration } from './load.js'
import { WrongAnswer } from './third-party/shape.js'

/**
 * Reports invalid demands at their rule. A limiter that throws may need something that only a real request has, so that
 * is not reported.
 */
export function tryDemands(
  loaded: Configuration,
  limiters: ReadonlyMap<string, Limiter<unknown>>,
): Problem[] {
  const { config, compiled } = loaded
  const rules = new Map(compiled.policy.rules.map(one => [one.rule.id, one]))
  return ruleFilesIn(config).flatMap(({ file, kind, document }) =>
    document.rules.flatMap(({ id }, i) => {
      const fault = faultOf(limiters.get(kind), rules.get(id))
      if (fault === undefined) return []
      const message = `The plugin "${kind}" does not say what rule "${id}" counts: ${fault}.`
      return problemAt(config, file, ['rules', i], message)
    }),
  )
}

function faultOf(limiter: Limiter<unknown> | undefined, entry: EndpointRule | undefined): string | undefined {
  if (limiter === undefined || entry === undefined) return undefined
  const { rule, match } = entry
  const [facts, route] = [factsFor(match), match[0] ?? '']
  try {
    if (limiter.applies?.(rule, facts) !== false) limiter.demand({ rule, key: 'sample', route, facts })
    return undefined
  } catch (error) {
    return error instanceof WrongAnswer ? error.message : undefined
  }
}

/** A request that the rule's first pattern matches, from an address reserved for documentation (RFC 5737). */
function factsFor([pattern = '/']: readonly string[]): Facts {
  const [, method = 'POST', path = ''] = /^(?:([A-Z]+) )?(.*)$/.exec(pattern) ?? []
  return factsOf({
    id: 'sample',
    method,
    path: pattern === '*' ? '/' : path.replace(/\{[^{}]*\}|\*+/g, 'sample'),
    host: 'sample.example',
    client: '192.0.2.1',
  })
}
