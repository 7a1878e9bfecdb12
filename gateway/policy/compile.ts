/** Policy files → one immutable policy, looked up per request. Reports every fault at once, by its place in the files. */
import { parseShare } from '../../config/rollout.js'
import { columnName, columnsOf, MODES } from '../../config/words.js'
import type { Algorithm, Environment, Mode, OnStoreError, Plan, Rule, Share, Source } from '../types.js'
import { foldPattern, type Pattern, PatternError, parsePattern } from './pattern.js'
import { type BucketTries, createPolicy, type EndpointRule, type Policy, type Table } from './policy.js'
import { rolledOut, trialUnder } from './rollout.js'
import { PathTrie } from './trie.js'
import type { PathReading } from './upstream-paths.js'

export interface Quota {
  readonly burst: number
  readonly sustained: number
  readonly algorithm: Algorithm
  readonly lease: boolean
  readonly trial?: TriedQuota | undefined
}
/** A quota that only reports; what it leaves out is as in the one beside it. */
export type TriedQuota = Pick<Quota, 'burst' | 'sustained'> & Partial<Pick<Quota, 'algorithm'>>

/** What one project has otherwise: what it leaves out, its trial included, is as for its plan and environment. */
export type Override = Partial<Omit<Quota, 'trial'>> & { readonly trial?: Partial<TriedQuota> | undefined }

/** A policy file of kind project-limits. */
export interface ProjectLimits {
  readonly file: string
  readonly mode: Mode
  readonly enforceFor?: string | undefined
  readonly onStoreError: OnStoreError
  readonly buckets: Readonly<Record<string, readonly string[]>>
  readonly limits: readonly {
    readonly for: Parameters<typeof columnsOf>[0]
    readonly quotas: Readonly<Record<string, Quota>>
  }[]
}
/** A policy file whose rules stand by themselves; `kind` names the limit plugin that reads their config. */
export interface EndpointRules {
  readonly file: string
  readonly kind: string
  /** Whether its rules look at GET, HEAD and OPTIONS too. */
  readonly limitsReads?: boolean
  readonly rules: readonly (Omit<Rule, 'kind' | 'source' | 'config' | 'share'> & {
    readonly match: readonly string[]
    readonly enforceFor?: string | undefined
  })[]
}
export interface PolicyInput {
  readonly projectLimits: readonly ProjectLimits[]
  readonly endpointRules: readonly EndpointRules[]
  readonly projects: readonly {
    readonly id: string
    readonly plan: Plan
    readonly environment: Environment
    readonly overrides: Readonly<Record<string, Override>>
  }[]
  readonly projectsFile: string
  readonly routes: readonly { readonly path: string; readonly upstream: string }[]
  readonly routesFile: string
  readonly revision: string
  /** How upstreams read paths, by name, where that is not as they are matched. */
  readonly readings: ReadonlyMap<string, PathReading>
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
  const columns = compileColumns(input, buckets)
  const projects = compileOverrides(input, buckets, columns, faults)
  const { rules, endpoint } = compileEndpointRules(input, faults)
  const policy = createPolicy({
    revision: input.revision,
    columns: rollOut(columns, buckets),
    projects: rollOut(projects, buckets),
    buckets: input.projectLimits.flatMap(({ mode, buckets }) =>
      Object.entries(buckets).map(([name, patterns]) => ({ name, patterns, mode })),
    ),
    rules,
    endpoint,
    routes: compileRoutes(input, faults),
    kindsOfReads: new Set(input.endpointRules.filter(one => one.limitsReads).map(({ kind }) => kind)),
    words: wordsOf(input),
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
  for (const { mode, enforceFor, buckets, limits } of files) {
    for (const name of [buckets, ...limits.map(({ quotas }) => quotas)].flatMap(Object.keys)) {
      const here = enforceFor === undefined ? [mode] : MODES
      modes.set(name, new Set([...(modes.get(name) ?? []), ...here]))
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

function compileColumns(input: PolicyInput, buckets: Buckets): Map<string, Table> {
  const columns = new Map<string, Table>()
  for (const limits of input.projectLimits) {
    for (const [i, row] of limits.limits.entries()) {
      const rules = new Map<string, Rule>()
      for (const [name, quota] of Object.entries(row.quotas)) {
        const source = input.sourceOf(limits.file, ['limits', i, 'quotas', name])
        rules.set(name, bucketRule(name, quota, limits, source))
      }
      const table = { rules, buckets: triesOf(rules, buckets) }
      for (const name of columnsOf(row.for)) columns.set(name, mergeTables(columns.get(name), table, buckets))
    }
  }
  return columns
}

/** Two project-limits files may each add buckets to one column. */
function mergeTables(present: Table | undefined, added: Table, buckets: Buckets): Table {
  if (present === undefined) return added
  const rules = new Map([...present.rules, ...added.rules])
  return { rules, buckets: triesOf(rules, buckets) }
}

function triesOf(rules: ReadonlyMap<string, Rule>, buckets: Buckets): BucketTries {
  const tries = emptyTries()
  for (const [name, { mode }] of rules) {
    for (const pattern of buckets.get(name) ?? []) tries[mode].add(pattern, name)
  }
  return tries
}

function emptyTries(): BucketTries {
  return { enforce: new PathTrie(), 'report-only': new PathTrie() }
}

/** Tables that several columns share stay shared. */
function rollOut(tables: ReadonlyMap<string, Table>, buckets: Buckets): Map<string, Table> {
  const made = new Map<Table, Table>()
  for (const table of tables.values()) {
    if (!made.has(table))
      made.set(
        table,
        rolledOut(table, rules => triesOf(rules, buckets)),
      )
  }
  return new Map([...tables].map(([name, table]) => [name, made.get(table) as Table]))
}

function shareOf(text: string | undefined, of: Share['of']): Share | undefined {
  return text === undefined ? undefined : { percent: parseShare(text), of }
}

function bucketRule(
  id: string,
  quota: Quota,
  limits: Pick<ProjectLimits, 'mode' | 'enforceFor' | 'onStoreError'> & Pick<Rule, 'share'>,
  source: Source,
): Rule {
  return {
    id,
    kind: 'project-limits',
    mode: limits.mode,
    key: ['project'],
    missing: 'skip',
    onStoreError: limits.onStoreError,
    share: limits.share ?? shareOf(limits.enforceFor, 'projects'),
    config: quota,
    source,
  }
}

/** Of a plan and environment that no row covers, as there may be while nothing is enforced. */
const NO_LIMITS: Table = { rules: new Map(), buckets: emptyTries() }

function compileOverrides(
  input: PolicyInput,
  buckets: Buckets,
  columns: ReadonlyMap<string, Table>,
  faults: Fault[],
): Map<string, Table> {
  const tables = new Map<string, Table>()
  for (const [i, project] of input.projects.entries()) {
    const names = Object.keys(project.overrides)
    if (names.length === 0) continue
    const row = columns.get(columnName(project.plan, project.environment)) ?? NO_LIMITS
    const rules = new Map(row.rules)
    for (const name of names) {
      const path = ['projects', i, 'overrides', name]
      const base = row.rules.get(name)
      const { trial, ...fixed } = project.overrides[name] as Override
      const written = base?.config as Quota | undefined
      const quota: Partial<Quota> = { ...PLAIN, ...written, ...fixed }
      if (quota.burst === undefined || quota.sustained === undefined) {
        const message = `Bucket "${name}" has no quota for ${columnName(project.plan, project.environment)}, so an override must give both burst and sustained.`
        faults.push({ file: input.projectsFile, path, message })
        continue
      }
      const limits = base ?? input.projectLimits.find(file => Object.hasOwn(file.buckets, name))
      if (limits === undefined) continue
      const source = input.sourceOf(input.projectsFile, path)
      const tried = trialUnder({ tried: written?.trial, fixed, own: trial, quota: quota as Quota })
      rules.set(name, bucketRule(name, { ...(quota as Quota), trial: tried }, limits, source))
    }
    const sameBuckets = rules.size === row.rules.size
    tables.set(project.id, { rules, buckets: sameBuckets ? row.buckets : triesOf(rules, buckets) })
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
      const share = shareOf(config.enforceFor, 'keys')
      const rule: Rule = { id, kind, mode, key, missing, onStoreError, share, config, source }
      all.push({ rule, match })
      for (const [j, text] of match.entries()) {
        const path = ['rules', i, 'match', j]
        const pattern = readPattern(text, file, path, faults)
        if (!limitsReads && (pattern?.method === 'HEAD' || pattern?.method === 'OPTIONS')) {
          const message = `The pattern "${text}" can never match: ${pattern.method} is exempt from endpoint-based limits.`
          faults.push({ file, path, message })
        }
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

function wordsOf({ projectLimits, endpointRules, routes }: PolicyInput): Set<string> {
  const paths = [
    ...projectLimits.flatMap(({ buckets }) => Object.values(buckets).flat()),
    ...endpointRules.flatMap(({ rules }) => rules.flatMap(({ match }) => match)),
    ...routes.map(({ path }) => path),
  ]
  const segments = paths.flatMap(path => {
    // What is wrong with a pattern is told where it is compiled.
    const pattern = readPattern(path, '', [], [])
    return pattern === undefined ? [] : [...pattern.segments, ...foldPattern(pattern).segments]
  })
  return new Set(segments.flatMap(segment => (segment.kind === 'literal' ? segment.text : [])))
}
