/** Policy files → one immutable policy, looked up per request. Reports every fault at once, by its place in the files. */
import { columnName, columnsOf, type PlanWords, type Selector } from '../../config/words.js'
import type { Algorithm, Environment, Mode, OnStoreError, Plan, Rule, Source } from '../types.js'
import { Overlay } from './overlay.js'
import { type Pattern, PatternError, parsePattern } from './pattern.js'
import { type BucketTries, createPolicy, type EndpointRule, type Policy, type Table } from './policy.js'
import { PathTrie } from './trie.js'
import type { UpstreamReading } from './upstream-reading.js'
import { compileWhen, type WrittenWhen } from './when.js'

export interface Quota {
  readonly burst: number
  readonly sustained: number
  readonly algorithm: Algorithm
  readonly lease: boolean
}
/** A policy file of kind project-limits. */
export interface ProjectLimits {
  readonly file: string
  readonly mode: Mode
  readonly onStoreError: OnStoreError
  readonly buckets: Readonly<Record<string, readonly string[]>>
  readonly limits: readonly {
    readonly for: readonly Selector[]
    readonly quotas: Readonly<Record<string, Quota>>
  }[]
}
/** A policy file whose rules stand by themselves; `kind` names the limit plugin that reads their config. */
export interface EndpointRules {
  readonly file: string
  readonly kind: string
  /** Whether its rules look at GET, HEAD and OPTIONS too. */
  readonly limitsReads?: boolean
  readonly rules: readonly (Omit<Rule, 'kind' | 'source' | 'config' | 'when'> & {
    readonly match: readonly string[]
    readonly when?: WrittenWhen | undefined
  })[]
}
export interface PolicyInput {
  readonly projectLimits: readonly ProjectLimits[]
  readonly endpointRules: readonly EndpointRules[]
  readonly projects: readonly {
    readonly id: string
    readonly plan: Plan
    readonly environment: Environment
    readonly overrides: Readonly<Record<string, Partial<Quota>>>
  }[]
  readonly projectsFile: string
  readonly planWords: PlanWords
  readonly routes: readonly { readonly path: string; readonly upstream: string }[]
  readonly routesFile: string
  readonly revision: string
  /** How upstreams read requests, by name, where that is not as they are matched. */
  readonly readings: ReadonlyMap<string, UpstreamReading>
  sourceOf(file: string, path: readonly (string | number)[]): Source
}

/** Something wrong at a place in a file. */
export interface Fault {
  readonly file: string
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** How a quota counts when nothing is said. */
const PLAIN = { algorithm: 'sliding-window', lease: false } as const

/** Bucket name → its patterns. */
type Buckets = ReadonlyMap<string, readonly Pattern[]>

/** Compiles the policy files; when `faults` is not empty the policy must not be used. */
export function compilePolicy(input: PolicyInput): { policy: Policy; faults: Fault[] } {
  const faults: Fault[] = []
  const buckets = readBuckets(input.projectLimits, faults)
  const tries = new Tries(buckets)
  const columns = compileColumns(input, tries)
  const projects = compileOverrides(input, tries, columns, faults)
  const { rules, endpoint } = compileEndpointRules(input, faults)
  const policy = createPolicy({
    revision: input.revision,
    columns,
    projects,
    buckets: input.projectLimits.flatMap(({ mode, buckets }) =>
      Object.entries(buckets).map(([name, patterns]) => ({ name, patterns, mode })),
    ),
    rules,
    endpoint,
    routes: compileRoutes(input, faults),
    words: wordsOf(buckets, input),
    readings: input.readings,
  })
  return { policy, faults }
}

function readBuckets(files: readonly ProjectLimits[], faults: Fault[]): Buckets {
  const buckets = new Map<string, readonly Pattern[]>()
  const modes = modesOf(files)
  const owners: BucketTries = emptyTries()
  for (const { file, buckets: written } of files) {
    for (const [name, texts] of Object.entries(written)) {
      const patterns: Pattern[] = []
      for (const [i, text] of texts.entries()) {
        const path = ['buckets', name, i]
        const pattern = readPattern(text, file, path, faults)
        if (pattern === undefined) continue
        const ties = [...(modes.get(name) ?? [])].map(mode => owners[mode].add(pattern, name))
        const tie = ties.find(one => one !== undefined)
        if (tie !== undefined) {
          const message = `The pattern "${text}" ties with "${tie.route}" of bucket "${tie.value}": a request must fall into exactly one bucket. Remove one of the two.`
          faults.push({ file, path, message })
        }
        patterns.push(pattern)
      }
      buckets.set(name, patterns)
    }
  }
  return buckets
}

/** In which tables a bucket may stand: that of the file which names it, and those of files that give it quotas. */
function modesOf(files: readonly ProjectLimits[]): Map<string, Set<Mode>> {
  const modes = new Map<string, Set<Mode>>()
  for (const { mode, buckets, limits } of files) {
    for (const name of [buckets, ...limits.map(({ quotas }) => quotas)].flatMap(Object.keys)) {
      modes.set(name, (modes.get(name) ?? new Set()).add(mode))
    }
  }
  return modes
}

function readPattern(
  text: string,
  file: string,
  path: (string | number)[],
  faults: Fault[],
): Pattern | undefined {
  try {
    return parsePattern(text)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    faults.push({ file, path, message: error.message })
    return undefined
  }
}

/** The rules of each column first, then tries: columns with the same rules share both. */
function compileColumns(input: PolicyInput, tries: Tries): Map<string, Table> {
  const columns = new Map<string, Rules>()
  const merged = new Map<Rules, Map<Rules, Rules>>()
  for (const limits of input.projectLimits) {
    for (const [i, row] of limits.limits.entries()) {
      const rules = new Map<string, Rule>()
      for (const [name, quota] of Object.entries(row.quotas)) {
        const source = input.sourceOf(limits.file, ['limits', i, 'quotas', name])
        rules.set(name, bucketRule(name, quota, limits, source))
      }
      for (const name of columnsOf(row.for, input.planWords)) {
        columns.set(name, mergeRules(columns.get(name), rules, merged))
      }
    }
  }
  const tables = new Map<Rules, Table>()
  for (const rules of columns.values()) {
    if (!tables.has(rules)) tables.set(rules, { rules, buckets: tries.of(rules) })
  }
  return new Map([...columns].map(([name, rules]) => [name, tables.get(rules) as Table]))
}

type Rules = Table['rules']

/** Two project-limits files may each add buckets to one column; columns that merge the same two share the result. */
function mergeRules(present: Rules | undefined, added: Rules, merged: Map<Rules, Map<Rules, Rules>>): Rules {
  if (present === undefined) return added
  const known = merged.get(present) ?? new Map<Rules, Rules>()
  merged.set(present, known)
  const rules = known.get(added) ?? new Map([...present, ...added])
  known.set(added, rules)
  return rules
}

/** Builds tries of buckets, those of the same buckets once: most rows and projects differ in their numbers alone. */
class Tries {
  readonly #buckets: Buckets
  readonly #built = new Map<string, BucketTries>()
  readonly #widened = new Map<Table, Map<string, BucketTries>>()

  constructor(buckets: Buckets) {
    this.#buckets = buckets
  }

  of(rules: Rules): BucketTries {
    const names = [...rules]
      .map(([name, { mode }]) => `${name} ${mode}`)
      .sort()
      .join('/')
    const present = this.#built.get(names)
    if (present !== undefined) return present
    const tries = emptyTries()
    for (const [name, { mode }] of rules) {
      for (const pattern of this.#buckets.get(name) ?? []) tries[mode].add(pattern, name)
    }
    this.#built.set(names, tries)
    return tries
  }

  /** Of a project's rules, which may have buckets that its row has not. */
  over(row: Table, rules: Overlay<Rule>): BucketTries {
    const { added } = rules
    if (added.length === 0) return row.buckets
    const known = this.#widened.get(row) ?? new Map<string, BucketTries>()
    this.#widened.set(row, known)
    const names = added.sort().join('/')
    const tries = known.get(names) ?? this.of(rules)
    known.set(names, tries)
    return tries
  }
}

function emptyTries(): BucketTries {
  return { enforce: new PathTrie(), 'report-only': new PathTrie() }
}

function bucketRule(
  id: string,
  quota: Quota,
  limits: Pick<ProjectLimits, 'mode' | 'onStoreError'>,
  source: Source,
): Rule {
  return {
    id,
    kind: 'project-limits',
    mode: limits.mode,
    key: ['project'],
    missing: 'skip',
    onStoreError: limits.onStoreError,
    config: quota,
    source,
  }
}

/** Of a plan and environment that no row covers, as there may be while nothing is enforced. */
const NO_LIMITS: Table = { rules: new Map(), buckets: emptyTries() }

function compileOverrides(
  input: PolicyInput,
  tries: Tries,
  columns: ReadonlyMap<string, Table>,
  faults: Fault[],
): Map<string, Table> {
  const tables = new Map<string, Table>()
  for (const [i, project] of input.projects.entries()) {
    const names = Object.keys(project.overrides)
    if (names.length === 0) continue
    const row = columns.get(columnName(project.plan, project.environment)) ?? NO_LIMITS
    const rules = new Overlay(row.rules)
    for (const name of names) {
      const path = ['projects', i, 'overrides', name]
      const base = row.rules.get(name)
      const quota: Partial<Quota> = {
        ...PLAIN,
        ...(base?.config as Quota | undefined),
        ...project.overrides[name],
      }
      if (quota.burst === undefined || quota.sustained === undefined) {
        const message = `Bucket "${name}" has no quota for ${columnName(project.plan, project.environment)}, so an override must give both burst and sustained.`
        faults.push({ file: input.projectsFile, path, message })
        continue
      }
      const limits = base ?? input.projectLimits.find(file => Object.hasOwn(file.buckets, name))
      if (limits === undefined) continue
      const source = input.sourceOf(input.projectsFile, path)
      rules.set(name, bucketRule(name, quota as Quota, limits, source))
    }
    tables.set(project.id, { rules, buckets: tries.over(row, rules) })
  }
  return tables
}

function compileEndpointRules(
  input: PolicyInput,
  faults: Fault[],
): { rules: EndpointRule[]; endpoint: PathTrie<Rule[]> } {
  const all: EndpointRule[] = []
  const trie = new PathTrie<Rule[]>()
  for (const { file, kind, limitsReads, rules } of input.endpointRules) {
    for (const [i, { match, ...config }] of rules.entries()) {
      const { id, mode, key, missing, onStoreError } = config
      const source = input.sourceOf(file, ['rules', i])
      const reads = limitsReads || config.reads
      const when = config.when && compileWhen(config.when)
      const rule: Rule = { id, kind, mode, key, missing, onStoreError, config, source, when, reads }
      all.push({ rule, match })
      for (const [j, text] of match.entries()) {
        const path = ['rules', i, 'match', j]
        const pattern = readPattern(text, file, path, faults)
        // Unlike buckets, several rules may watch one pattern: they share its place in the tree.
        const present = pattern && trie.add(pattern, [rule])
        if (present === undefined) continue
        if (present.value.includes(rule)) {
          faults.push({ file, path, message: `The pattern "${text}" is written twice in rule "${id}".` })
        } else present.value.push(rule)
      }
    }
  }
  return { rules: all, endpoint: trie }
}

function compileRoutes({ routes, routesFile: file }: PolicyInput, faults: Fault[]): PathTrie<string> {
  const trie = new PathTrie<string>()
  for (const [i, { path: text, upstream }] of routes.entries()) {
    const path = ['routes', i, 'path']
    const pattern = readPattern(text, file, path, faults)
    const tie = pattern && trie.add(pattern, upstream)
    if (tie === undefined) continue
    faults.push({
      file,
      path,
      message: `The path "${text}" ties with "${tie.route}", which is routed already.`,
    })
  }
  return trie
}

function wordsOf(buckets: Buckets, { endpointRules, routes }: PolicyInput): Set<string> {
  const paths = [
    ...endpointRules.flatMap(({ rules }) => rules.flatMap(({ match }) => match)),
    ...routes.map(({ path }) => path),
  ]
  // What is wrong with a pattern is told where it is compiled.
  const others = paths.flatMap(path => readPattern(path, '', [], []) ?? [])
  const words = new Set<string>()
  for (const { segments } of [...[...buckets.values()].flat(), ...others]) {
    for (const segment of segments) {
      // In small letters too: some upstreams take either.
      if (segment.kind === 'literal') words.add(segment.text).add(segment.text.toLowerCase())
    }
  }
  return words
}
