/** Reports in-flight and volumetric rules that add nothing, cover fewer requests than they seem to, or look at none. */
import { isDeepStrictEqual } from 'node:util'
import { listed } from '../../config/problem.js'
import type { RuleEntry } from '../../config/schema/policy.js'
import { columnOfUnknown } from '../../config/words/words.js'
import type { VolumetricRule } from '../../gateway/explain/settings.js'
import { type Pattern, parsePattern } from '../../gateway/policy/pattern.js'
import { methodsOf, READS } from '../../gateway/policy/policy.js'
import { extentOf, sampleRequestsOf } from '../../gateway/policy/sample-requests.js'
import { PathTrie } from '../../gateway/policy/trie.js'
import type { Remark, Subject } from './lint.js'

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
    const [a, b] = [one, other] as unknown as [VolumetricRule, VolumetricRule]
    const isAlike = isDeepStrictEqual([a.cost, a.countWhen], [b.cost, b.countWhen])
    if (a.quota.per !== b.quota.per || a.count !== b.count || !isAlike) return undefined
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

/** Patterns for reads that the rule exempts. A rule that counts lifetimes or messages is meant for WebSockets. */
function exemptReads({ file, index, rule, patterns }: Written): Remark[] {
  return patterns.flatMap(({ method, text }, i): Remark[] => {
    const isWanted = method === 'GET' && (rule.count === 'lifetime' || rule.count === 'message')
    if (isWanted || method === undefined || !READS.includes(method)) return []
    const but = method === 'GET' ? ' but the GET that opens a WebSocket' : ''
    const message = `Rule "${rule.id}" counts nothing of "${text}"${but}: GET, HEAD and OPTIONS are exempt from endpoint-based limits. To limit them, write reads: true or give the pattern to a bucket; to limit writes, name their method.`
    return [{ severity: 'warning', file, path: ['rules', index, 'match', i], message }]
  })
}

type Loaded = Subject['loaded']

/** Why a rule looks at no request, as the end of a sentence, and the key of the rule that is to blame. */
interface Idle {
  readonly key: readonly string[]
  readonly why: string
}

export function checkIdleRules({ rules: files, loaded }: Subject): Remark[] {
  return files.flatMap(({ file, document }) =>
    document.rules.flatMap((rule, i): Remark[] => {
      const idle = unverified(rule, loaded) ?? anonymous(rule, loaded) ?? unmet(rule, loaded)
      const at = { severity: 'warning', file } as const
      if (idle !== undefined) {
        const message = `Rule "${rule.id}" looks at no request: ${idle.why}.`
        return [{ ...at, path: ['rules', i, ...idle.key], message }]
      }
      const message = unseenFingerprint(rule, loaded)
      return message === undefined ? [] : [{ ...at, path: ['rules', i, 'key'], message }]
    }),
  )
}

/** For verified clients when no identifier verifies credentials. */
function unverified({ when }: RuleEntry, loaded: Loaded): Idle | undefined {
  if (when?.authenticated !== 'verified' || verifies(loaded)) return undefined
  const why = `none of the identifiers checks a credential. Those that do: ${listed(verifying(loaded))}`
  return { key: ['when', 'authenticated'], why }
}

/** For clients with credentials when no field or cookie counts as one, and no identifier uses one. */
function anonymous({ when }: RuleEntry, loaded: Loaded): Idle | undefined {
  const { headers, cookies } = loaded.config.gateway.credentials
  if (when?.authenticated !== true || headers.length + cookies.length > 0 || verifies(loaded))
    return undefined
  return {
    key: ['when', 'authenticated'],
    why: 'credentials of gateway.yaml lists neither headers nor cookies',
  }
}

const verifying = ({ plugins }: Loaded) =>
  plugins.identify.filter(({ verifies }) => verifies).map(({ name }) => name)

function verifies(loaded: Loaded): boolean {
  const names = verifying(loaded)
  return loaded.config.gateway.identify.some(({ plugin }) => names.includes(plugin))
}

/** For projects that all have another plan or environment than the rule asks for. */
function unmet({ when = {} }: RuleEntry, { config: { projects, gateway } }: Loaded): Idle | undefined {
  const { projects: ids, plans, environments } = when
  if (ids === undefined || (plans === undefined && environments === undefined)) return undefined
  const unknown = columnOfUnknown(gateway.unknownProject)
  const isMet = (id: string) => {
    const column = projects.find(one => one.id === id) ?? unknown
    if (column === undefined) return false
    const isPlan = plans === undefined || plans.includes(column.plan)
    return isPlan && (environments === undefined || environments.includes(column.environment))
  }
  if (ids.some(isMet)) return undefined
  return {
    key: ['when', 'projects'],
    why: 'none of these projects has such a plan and environment',
  }
}

/** What becomes of requests without a fingerprint, which are all. */
const WITHOUT: Readonly<Record<RuleEntry['missing'], string>> = {
  skip: 'looks at no request',
  shared: 'counts all requests together',
  deny: 'refuses every request',
}

/** Fingerprints in the key of an enforced rule where none can be known. */
function unseenFingerprint(rule: RuleEntry, { config: { gateway } }: Loaded): string | undefined {
  const part = rule.key.find(one => one === 'ja3' || one === 'ja4')
  const { listen, trustedProxies } = gateway
  if (part === undefined || rule.mode !== 'enforce') return undefined
  if (listen.tls !== undefined || trustedProxies.length > 0) return undefined
  return `Rule "${rule.id}" ${WITHOUT[rule.missing]}: there is no ${part} without listen.tls or a trusted proxy that sends it.`
}
