/**
 * Compiles rows and overrides into tables of limits: one for each plan and environment, and for each project with
 * overrides.
 */
import type { BucketConfig } from '../../config/words/bucket.js'
import {
  overridden,
  type QuotaEntry,
  type QuotaOverride,
  tooMany,
  windowsOf,
} from '../../config/words/quota.js'
import { columnName, columnsOf, UNLIMITED } from '../../config/words/words.js'
import type { Environment, Plan, Rule, Source } from '../types.js'
import type { KnownBucket, KnownBuckets } from './buckets.js'
import type { Fault } from './fault.js'
import type { PolicyInput, ProjectLimits } from './input.js'
import { Overlay } from './overlay.js'
import type { Table } from './policy.js'
import { rolledOut, shareOf } from './rollout.js'
import { emptyTries, mergeRules, type Rules, type Tries } from './tries.js'

/** Merges the rules of each column first, then builds tries: columns with the same rules share both. */
export function compileColumns(input: PolicyInput, buckets: KnownBuckets, tries: Tries): Map<string, Table> {
  const columns = new Map<string, Rules>()
  const merged = new Map<Rules, Map<Rules, Rules>>()
  for (const limits of input.projectLimits) {
    for (const [i, row] of limits.limits.entries()) {
      const rules = new Map<string, Rule>()
      for (const [name, quota] of Object.entries(row.quotas)) {
        const source = input.sourceOf(limits.file, ['limits', i, 'quotas', name])
        rules.set(name, bucketRule(name, quota, buckets.get(name), limits, source))
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

/** For a plan and environment that no row covers, which is allowed while nothing is enforced. */
const NO_LIMITS: Table = { rules: new Map(), buckets: emptyTries() }

export function compileOverrides(
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
      rules.set(name, bucketRule(name, quota, buckets.get(name), limits, source))
    }
    tables.set(project.id, { rules, buckets: tries.over(row, rules) })
  }
  return tables
}

/** Why an overridden bucket has no valid quota; undefined if it has one. */
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

function bucketRule(
  id: string,
  quota: QuotaEntry,
  bucket: KnownBucket | undefined,
  limits: Pick<ProjectLimits, 'mode' | 'enforceFor' | 'onStoreError'> & Pick<Rule, 'share'>,
  source: Source,
): Rule {
  return {
    id,
    kind: 'project-limits',
    mode: limits.mode,
    key: bucket?.key ?? ['project'],
    missing: 'skip',
    onStoreError: limits.onStoreError,
    share: limits.share ?? shareOf(limits.enforceFor, 'projects'),
    config: configOf(quota, bucket),
    source,
  }
}

/**
 * Adds trials and shares. Tables that several columns share stay shared; without trials and shares, all stay the same.
 */
export function rollOut(
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
