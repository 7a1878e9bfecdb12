/** Asks each limit plugin for the demands of its rules before any traffic does. */
import { type Config, isProjectLimits, problemAt, type RulesPolicy } from '../../config/load.js'
import type { Problem } from '../../config/problem.js'
import type { RuleEntry } from '../../config/schema/policy.js'
import { factsOf } from '../listen/written.js'
import type { Limiter } from '../plugin.js'
import type { Facts, Rule } from '../types.js'
import { WrongAnswer } from './third-party/shape.js'

/**
 * Reports invalid demands at their rule. A limiter that throws may need something that only a real request has, so that
 * is not reported.
 */
export function tryDemands(config: Config, limiters: ReadonlyMap<string, Limiter<unknown>>): Problem[] {
  const files = config.policies.filter((policy): policy is RulesPolicy => !isProjectLimits(policy))
  return files.flatMap(({ file, kind, document }) =>
    document.rules.flatMap((entry, i) => {
      const path = ['rules', i]
      const source = { file, line: config.locate(file, path).line }
      const fault = faultOf(limiters.get(kind), ruleOf(entry, kind, source, config), entry)
      if (fault === undefined) return []
      const message = `The plugin "${kind}" does not say what rule "${entry.id}" counts: ${fault}.`
      return problemAt(config, file, path, message)
    }),
  )
}

function faultOf(limiter: Limiter<unknown> | undefined, rule: Rule, entry: RuleEntry): string | undefined {
  const [facts, route] = [factsFor(entry), entry.match[0] ?? '']
  try {
    if (limiter?.applies?.(rule, facts) !== false) limiter?.demand({ rule, key: 'sample', route, facts })
    return undefined
  } catch (error) {
    return error instanceof WrongAnswer ? error.message : undefined
  }
}

function ruleOf(
  { match, ...config }: RuleEntry,
  kind: string,
  source: Rule['source'],
  { gateway }: Config,
): Rule {
  const { id, mode, key, missing, onStoreError = gateway.store.onError } = config
  return { id, kind, mode, key, missing, onStoreError, config: { ...config, onStoreError }, source }
}

/** A request that the rule's first pattern matches, from an address reserved for documentation (RFC 5737). */
function factsFor({ match: [pattern = '/'] }: RuleEntry): Facts {
  const [, method = 'POST', path = ''] = /^(?:([A-Z]+) )?(.*)$/.exec(pattern) ?? []
  return factsOf({
    id: 'sample',
    method,
    path: pattern === '*' ? '/' : path.replace(/\{[^{}]*\}|\*+/g, 'sample'),
    host: 'sample.example',
    client: '192.0.2.1',
  })
}
