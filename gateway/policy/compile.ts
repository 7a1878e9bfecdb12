/** Policy files → one immutable policy, looked up per request. Reports every fault at once, by its place in the files. */
import { type BucketConfig, type BucketEntry, type BucketPattern, patternsOf } from '../../config/bucket.js'
import { overridden, type QuotaEntry, type QuotaOverride, tooMany, windowsOf } from '../../config/quota.js'
import { parseShare } from '../../config/rollout.js'
import { columnName, columnsOf, MODES, type PlanWords, type Selector, UNLIMITED } from '../../config/words.js'
import type { Environment, Mode, OnStoreError, Plan, Rule, Share, Source } from '../types.js'
import { Overlay } from './overlay.js'
import { type Pattern, PatternError, parsePattern } from './pattern.js'
import { type BucketTries, createPolicy, type EndpointRule, type Policy, type Table } from './policy.js'
import { rolledOut } from './rollout.js'
import { PathTrie } from './trie.js'
import { emptyTries, mergeRules, type Rules, Tries } from './tries.js'
import type { UpstreamReading } from './upstream-reading.js'
import { compileWhen, type WrittenWhen } from './when.js'

/** A policy file of kind project-limits. */
export interface ProjectLimits {
  readonly file: string
  readonly mode: Mode
  readonly enforceFor?: string | undefined
  readonly onStoreError: OnStoreError
  readonly buckets: Readonly<Record<string, BucketEntry>>
  readonly limits: readonly {
    readonly for: readonly Selector[]
    readonly quotas: Readonly<Record<string, QuotaEntry>>
  }[]
}
/** A policy file whose rules stand by themselves; `kind` names the limit plugin that reads their config. */
export interface EndpointRules {
  readonly file: string
  readonly kind: string
  /** Whether its rules look at GET, HEAD and OPTIONS too. */
  readonly limitsReads?: boolean
  readonly rules: readonly (Omit<Rule, 'kind' | 'source' | 'config' | 'share' | 'when'> & {
    readonly match: readonly string[]
    readonly enforceFor?: string | undefined
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
    readonly overrides: Readonly<Record<string, QuotaOverride>>
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

/** What is known of a bucket wherever it has a quota. */
interface KnownBucket {
  readonly file: string
  readonly patterns: readonly Pattern[]
  readonly written: readonly BucketPattern[]
  /** By pattern; undefined where each request costs one. */
  readonly costs: Readonly<Record<string, number>> | undefined
}
type KnownBuckets = ReadonlyMap<string, KnownBucket>

/** Compiles the policy files; when `faults` is not empty the policy must not be used. */
export function compilePolicy(input: PolicyInput): { policy: Policy; faults: Fault[] } {
  const faults: Fault[] = []
  const buckets = readBuckets(input.projectLimits, faults)
  const tries = new Tries(buckets)
  const columns = compileColumns(input, buckets, tries)
  const projects = compileOverrides(input, buckets, tries, columns, faults)
  checkCosts([...columns.values(), ...projects.values()], buckets, faults)
  const { rules, endpoint } = compileEndpointRules(input, faults)
  const policy = createPolicy({
    revision: input.revision,
    columns: rollOut(columns, tries, input),
    projects: rollOut(projects, tries, input),
    buckets: input.projectLimits.flatMap(({ mode, buckets }) =>
      Object.entries(buckets).map(([name, entry]) => ({
        name,
        patterns: patternsOf(entry, []).map(({ text }) => text),
        mode,
      })),
    ),
    rules,
    endpoint,
    routes: compileRoutes(input, faults),
    words: wordsOf(buckets, input),
    readings: input.readings,
  })
  return { policy, faults }
}

function readBuckets(files: readonly ProjectLimits[], faults: Fault[]): KnownBuckets {
  const buckets = new Map<string, KnownBucket>()
  const modes = modesOf(files)
  const owners: BucketTries = emptyTries()
  for (const { file, buckets: written } of files) {
    for (const [name, entry] of Object.entries(written)) {
      const entries = patternsOf(entry, ['buckets', name])
      const patterns: Pattern[] = []
      for (const { text, path } of entries) {
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
      buckets.set(name, { file, patterns, written: entries, costs: costsOf(entries) })
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
  path: readonly (string | number)[],
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
function compileColumns(input: PolicyInput, buckets: KnownBuckets, tries: Tries): Map<string, Table> {
  const columns = new Map<string, Rules>()
  const merged = new Map<Rules, Map<Rules, Rules>>()
  for (const limits of input.projectLimits) {
    for (const [i, row] of limits.limits.entries()) {
      const rules = new Map<string, Rule>()
      for (const [name, quota] of Object.entries(row.quotas)) {
        const source = input.sourceOf(limits.file, ['limits', i, 'quotas', name])
        rules.set(name, bucketRule(name, configOf(quota, buckets.get(name)), limits, source))
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

/** Tables that several columns share stay shared; where nothing is tried they stay as they are. */
function rollOut(
  tables: ReadonlyMap<string, Table>,
  tries: Tries,
  input: PolicyInput,
): ReadonlyMap<string, Table> {
  if (!triesAnything(input)) return tables
  const made = new Map<Table, Table>()
  for (const table of tables.values()) {
    if (!made.has(table))
      made.set(
        table,
        rolledOut(table, rules => tries.of(rules)),
      )
  }
  return new Map([...tables].map(([name, table]) => [name, made.get(table) as Table]))
}

function triesAnything({ projectLimits, projects }: PolicyInput): boolean {
  const hasTrial = (quotas: Readonly<Record<string, QuotaOverride>>) =>
    Object.values(quotas).some(quota => quota !== UNLIMITED && quota.trial !== undefined)
  return (
    projectLimits.some(
      ({ enforceFor, limits }) => enforceFor !== undefined || limits.some(({ quotas }) => hasTrial(quotas)),
    ) || projects.some(({ overrides }) => hasTrial(overrides))
  )
}

function shareOf(text: string | undefined, of: Share['of']): Share | undefined {
  return text === undefined ? undefined : { percent: parseShare(text), of }
}

function bucketRule(
  id: string,
  config: BucketConfig,
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
    config,
    source,
  }
}

/** Of a plan and environment that no row covers, as there may be while nothing is enforced. */
const NO_LIMITS: Table = { rules: new Map(), buckets: emptyTries() }

function compileOverrides(
  input: PolicyInput,
  buckets: KnownBuckets,
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
      const override = project.overrides[name] as QuotaOverride
      const quota = overridden(quotaOf(base?.config as BucketConfig | undefined), override)
      const fault = overrideFault(name, quota, project)
      if (fault !== undefined) {
        faults.push({ file: input.projectsFile, path, message: fault })
        continue
      }
      const limits = base ?? input.projectLimits.find(file => Object.hasOwn(file.buckets, name))
      if (limits === undefined) continue
      const source = input.sourceOf(input.projectsFile, path)
      rules.set(name, bucketRule(name, configOf(quota, buckets.get(name)), limits, source))
    }
    tables.set(project.id, { rules, buckets: tries.over(row, rules) })
  }
  return tables
}

/** Why the quota of an overridden bucket is none; undefined when it is. */
function overrideFault(
  name: string,
  quota: QuotaEntry,
  { plan, environment }: { readonly plan: Plan; readonly environment: Environment },
): string | undefined {
  if (quota === UNLIMITED) return undefined
  if (windowsOf(quota).length > 0) return tooMany(quota)
  return `Bucket "${name}" has no quota for ${columnName(plan, environment)}, so an override must give a window: burst, sustained or windows.`
}

function configOf(quota: QuotaEntry, bucket: KnownBucket | undefined): BucketConfig {
  if (quota === UNLIMITED) return { unlimited: true }
  return bucket?.costs === undefined ? quota : { ...quota, costs: bucket.costs }
}

function quotaOf(config: BucketConfig | undefined): QuotaEntry | undefined {
  if (config === undefined) return undefined
  if ('unlimited' in config) return UNLIMITED
  const { costs, ...quota } = config
  return quota
}

function costsOf(entries: readonly BucketPattern[]): Record<string, number> | undefined {
  const costly = entries.filter(({ cost }) => cost > 1)
  return costly.length === 0 ? undefined : Object.fromEntries(costly.map(({ text, cost }) => [text, cost]))
}

/** A request that costs more than a quota admits could never pass there. */
function checkCosts(tables: readonly Table[], buckets: KnownBuckets, faults: Fault[]): void {
  for (const [name, { costs, file, written }] of buckets) {
    if (costs === undefined) continue
    const least = tables
      .flatMap(({ rules }) => quotasIn(rules.get(name)))
      .sort((a, b) => a.requests - b.requests)[0]
    if (least === undefined) continue
    const { policy, requests, source } = least
    const over = new Map(
      written.filter(({ cost }) => cost > requests).map(one => [JSON.stringify(one.costPath), one]),
    )
    for (const { cost, costPath = [] } of over.values()) {
      const message = `A request that costs ${cost} could never pass: "${policy}" admits ${requests} at ${source.file}:${source.line}. Lower the cost, or raise the quota.`
      faults.push({ file, path: costPath, message })
    }
  }
}

function quotasIn(rule: Rule | undefined) {
  const config = rule?.config as BucketConfig | undefined
  if (rule === undefined || config === undefined || 'unlimited' in config) return []
  const { id, source } = rule
  const tried = windowsOf(config.trial ?? {}).map(one => ({ ...one, name: `trial.${one.name}` }))
  return [...windowsOf(config), ...tried].map(({ name, requests }) => {
    return { policy: `${id}.${name}`, requests, source }
  })
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
      const reads = limitsReads || config.reads
      const when = config.when && compileWhen(config.when)
      const rule: Rule = { id, kind, mode, key, missing, onStoreError, share, config, source, when, reads }
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

function wordsOf(buckets: KnownBuckets, { endpointRules, routes }: PolicyInput): Set<string> {
  const paths = [
    ...endpointRules.flatMap(({ rules }) => rules.flatMap(({ match }) => match)),
    ...routes.map(({ path }) => path),
  ]
  // What is wrong with a pattern is told where it is compiled.
  const others = paths.flatMap(path => readPattern(path, '', [], []) ?? [])
  const words = new Set<string>()
  const own = [...buckets.values()].flatMap(({ patterns }) => patterns)
  for (const { segments } of [...own, ...others]) {
    for (const segment of segments) {
      // In small letters too: some upstreams take either.
      if (segment.kind === 'literal') words.add(segment.text).add(segment.text.toLowerCase())
    }
  }
  return words
}
