/** Reports in-flight and volumetric rules that add nothing, or that cover fewer requests than they seem to. */
import { isDeepStrictEqual } from 'node:util'
import { listed } from '../../config/problem.js'
import type { RuleEntry } from '../../config/schema/policy.js'
import type { Flood } from '../../gateway/explain/settings.js'
import { type Pattern, parsePattern } from '../../gateway/policy/pattern.js'
import { methodsOf, READS } from '../../gateway/policy/policy.js'
import { extentOf, sampleRequestsOf } from '../../gateway/policy/sample-requests.js'
import { PathTrie } from '../../gateway/policy/trie.js'
import type { Remark, Subject } from './finding.js'

interface Written {
  readonly file: string
  readonly kind: string
  readonly index: number
  /** Its place among the rules of all files. */
  readonly order: number
  readonly rule: RuleEntry
  readonly patterns: readonly Pattern[]
}

export function checkRules({ rules: files, loaded }: Subject): Remark[] {
  const all = files
    .flatMap(({ file, kind, document }) => document.rules.map((rule, index) => ({ file, kind, index, rule })))
    .map((one, order): Written => ({ ...one, order, patterns: one.rule.match.map(parsePattern) }))
  const coverers = coverersAmong(all)
  const limitsReads = new Set(
    loaded.plugins.limit.filter(plugin => plugin.limitsReads).map(({ name }) => name),
  )
  const methods = rulesFiles(files, loaded)
  const each = all.flatMap(one => [
    ...shadowed(one, coverers),
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
      const alike = names.get(counted) ?? []
      alike.push(`"${id}"`)
      names.set(counted, alike)
    }
    if (names.size === 0) return []
    const sentences = [...names].map(
      ([counted, rules]) => `${listed(rules, 'and')} ${rules.length === 1 ? 'counts' : 'count'} ${counted}`,
    )
    const message = `Methods: ${sentences.join('; ')}. With reads: true a rule counts GET, HEAD and OPTIONS too.`
    return [{ severity: 'note', file, path: ['rules'], message }]
  })
}

/** The rules that match every request of a rule, in the order in which they are written; itself among them. */
type Coverers = (rule: Written) => readonly Written[]

function shadowed(one: Written, coverers: Coverers): Remark[] {
  const stricter = coverers(one).find(other => other !== one && refusesFirst(other, one, coverers))
  if (stricter === undefined) return []
  const { rule, file, index } = one
  const message = `Rule "${rule.id}" can never refuse anybody first: "${stricter.rule.id}" counts the same requests by the same key and allows no more.`
  return [{ severity: 'warning', file, path: ['rules', index], message }]
}

/** True when `other`, which covers `one`, refuses whatever `one` would. Of two equal rules, the first is kept. */
function refusesFirst(other: Written, one: Written, coverers: Coverers): boolean {
  const [a, b] = [other.rule, one.rule]
  // A rule enforced for a share lets other keys pass.
  if (a.enforceFor !== undefined) return false
  if (other.kind !== one.kind || a.mode !== b.mode || a.missing !== b.missing) return false
  if ((a.when !== undefined && !isDeepStrictEqual(a.when, b.when)) || (b.reads && !a.reads)) return false
  // With the key part `path`, each pattern has its own counters.
  if (b.key.includes('path') || !isDeepStrictEqual(new Set(a.key), new Set(b.key))) return false
  const strictness = STRICTER[one.kind]?.(a, b)
  if (strictness === undefined) return false
  return strictness === 'more' || other.order < one.order || !coverers(other).includes(one)
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

/** One tree of all patterns: to compare each rule with each other would take minutes for thousands of rules. */
function coverersAmong(all: readonly Written[]): Coverers {
  const extent = extentOf(all.flatMap(({ patterns }) => patterns))
  const trie = new PathTrie<Written[]>()
  for (const one of all) {
    for (const pattern of one.patterns) trie.add(pattern, [one])?.value.push(one)
  }
  return ({ patterns }) => {
    const samples = patterns.flatMap(pattern => sampleRequestsOf(pattern, extent))
    const [first, ...more] = samples.map(
      ({ method, path }) => new Set(trie.findAll(method, path).flatMap(({ value }) => value)),
    )
    return [...(first ?? [])]
      .filter(one => more.every(matching => matching.has(one)))
      .sort((a, b) => a.order - b.order)
  }
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
