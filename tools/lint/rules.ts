/** Reports in-flight and volumetric rules that add nothing, or that cover fewer requests than they seem to. */
import { isDeepStrictEqual } from 'node:util'
import type { RuleEntry } from '../../config/policy-schema.js'
import { listed } from '../../config/problem.js'
import type { Flood } from '../../gateway/explain/settings.js'
import { READS } from '../../gateway/policy/counted-methods.js'
import { type Pattern, parsePattern } from '../../gateway/policy/pattern.js'
import { methodsOf } from '../../gateway/policy/policy.js'
import { PathTrie } from '../../gateway/policy/trie.js'
import { type Extent, extentOf, witnessesOf } from '../../gateway/policy/witness.js'
import type { Remark, Subject } from './finding.js'

interface Written {
  readonly file: string
  readonly kind: string
  readonly index: number
  readonly rule: RuleEntry
  readonly patterns: readonly Pattern[]
}

export function checkRules({ rules: files, loaded }: Subject): Remark[] {
  const all = files.flatMap(({ file, kind, document }) =>
    document.rules.map((rule, index): Written => {
      return { file, kind, index, rule, patterns: rule.match.map(parsePattern) }
    }),
  )
  const extent = extentOf(all.flatMap(({ patterns }) => patterns))
  const limitsReads = new Set(
    loaded.plugins.limit.filter(plugin => plugin.limitsReads).map(({ name }) => name),
  )
  const methods = rulesFiles(files, loaded)
  const each = all.flatMap(one => [
    ...shadowed(one, all, extent),
    ...(limitsReads.has(one.kind) || one.rule.reads ? [] : exemptReads(one)),
  ])
  return [...methods, ...each]
}

/** The kinds of the specification's endpoint-based limits. */
const READ_EXEMPT = ['in-flight', 'volumetric']

/** For each file: which methods its rules count. */
function rulesFiles(files: Subject['rules'], { compiled }: Subject['loaded']): Remark[] {
  const methods = new Map(compiled.policy.rules.map(one => [one.rule.id, methodsOf(one)]))
  return files.flatMap(({ file, kind, document }): Remark[] => {
    if (!READ_EXEMPT.includes(kind)) return []
    const names = new Map<string, string[]>()
    for (const { id } of document.rules) {
      const counted = methods.get(id) as string
      names.set(counted, [...(names.get(counted) ?? []), `"${id}"`])
    }
    if (names.size === 0) return []
    const sentences = [...names].map(
      ([counted, rules]) => `${listed(rules, 'and')} ${rules.length === 1 ? 'counts' : 'count'} ${counted}`,
    )
    const message = `Methods: ${sentences.join('; ')}. With reads: true a rule counts GET, HEAD and OPTIONS too.`
    return [{ severity: 'note', file, path: ['rules'], message }]
  })
}

function shadowed(one: Written, all: readonly Written[], extent: Extent): Remark[] {
  const stricter = all.find(other => other !== one && refusesFirst(other, one, all, extent))
  if (stricter === undefined) return []
  const { rule, file, index } = one
  const message = `Rule "${rule.id}" can never refuse anybody first: "${stricter.rule.id}" counts the same requests by the same key and allows no more.`
  return [{ severity: 'warning', file, path: ['rules', index], message }]
}

/** True when `other` refuses whatever `one` would. Of two equal rules, the first is kept. */
function refusesFirst(other: Written, one: Written, all: readonly Written[], extent: Extent): boolean {
  const [a, b] = [other.rule, one.rule]
  // A rule enforced for a share lets other keys pass.
  if (a.enforceFor !== undefined) return false
  if (other.kind !== one.kind || a.mode !== b.mode || a.missing !== b.missing) return false
  if ((a.when !== undefined && !isDeepStrictEqual(a.when, b.when)) || (b.reads && !a.reads)) return false
  // With the key part `path`, each pattern has its own counters.
  if (b.key.includes('path') || !isDeepStrictEqual(new Set(a.key), new Set(b.key))) return false
  const strictness = STRICTER[one.kind]?.(a, b)
  if (strictness === undefined || !covers(other.patterns, one.patterns, extent)) return false
  return (
    strictness === 'more' ||
    !covers(one.patterns, other.patterns, extent) ||
    all.indexOf(other) < all.indexOf(one)
  )
}

/** How the limit of one rule compares with another's; undefined when it may admit what the other refuses. */
type Compare = (one: RuleEntry, other: RuleEntry) => 'more' | 'equal' | undefined

const STRICTER: Readonly<Record<string, Compare>> = {
  'in-flight': (one, other) => {
    const [a, b] = [one, other] as unknown as [{ max: number; count: string }, { max: number; count: string }]
    if (a.count !== b.count) return undefined
    return a.max < b.max ? 'more' : a.max === b.max ? 'equal' : undefined
  },
  volumetric: (one, other) => {
    const [a, b] = [one, other] as unknown as [Flood, Flood]
    const isAlike = isDeepStrictEqual([a.cost, a.countWhen], [b.cost, b.countWhen])
    if (a.quota.per !== b.quota.per || !isAlike) return undefined
    const [blockA = 0, blockB = 0] = [a.blockFor, b.blockFor]
    if (a.quota.requests > b.quota.requests || blockA < blockB) return undefined
    return a.quota.requests < b.quota.requests || blockA > blockB ? 'more' : 'equal'
  },
}

/** True when every request that `inner` matches is matched by `outer` too. */
function covers(outer: readonly Pattern[], inner: readonly Pattern[], extent: Extent): boolean {
  const trie = new PathTrie<true>()
  for (const pattern of outer) trie.add(pattern, true)
  return inner
    .flatMap(pattern => witnessesOf(pattern, extent))
    .every(({ method, path }) => trie.find(method, path) !== undefined)
}

/** Patterns for reads that the rule exempts. A rule that counts lifetimes is meant for WebSockets. */
function exemptReads({ file, index, rule, patterns }: Written): Remark[] {
  return patterns.flatMap(({ method, text }, i): Remark[] => {
    const isWanted = method === 'GET' && rule.count === 'lifetime'
    if (isWanted || method === undefined || !READS.includes(method)) return []
    const but = method === 'GET' ? ' but the GET that opens a WebSocket' : ''
    const message = `Rule "${rule.id}" counts nothing of "${text}"${but}: GET, HEAD and OPTIONS are exempt from endpoint-based limits. To limit them, write reads: true or give the pattern to a bucket; to limit writes, name their method.`
    return [{ severity: 'warning', file, path: ['rules', index, 'match', i], message }]
  })
}
