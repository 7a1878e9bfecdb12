/**
 * Compiles rows and overrides into tables of limits: one for each plan and environment, and for each project with
 * overrides.
 */

import type { ProjectLimitsPolicy } from '../../config/types.js'
import { type BucketConfig, PROJECT_LIMITS } from '../../config/words/bucket.js'
import {
  overridden,
  type QuotaEntry,
  type QuotaOverride,
  tooMany,
  windowsOf,
} from '../../config/words/quota.js'
import { columnName, columnsOf, UNLIMITED } from '../../config/words/words.js'
import { compiledRule } from '../compiled-rule.js'
import type { Environment, Plan, Rule, Source } from '../types.js'
import type { KnownBucket, KnownBuckets } from './buckets.js'
import { onStoreErrorIn, type PolicyConfig, projectLimitsIn, sourceIn } from './documents.js'
import type { Fault } from './fault.js'
import { Overlay } from './overlay.js'
import type { BucketRule, Table } from './policy.js'
import { rolledOut, shareOf } from './shares-and-trials.js'
import { emptyTries, mergeRules, type Rules, type Tries } from './tries.js'

/** Merges the rules of each column first, then builds tries: columns with the same rules share both. */
export function compileColumns(
  config: PolicyConfig,
  buckets: KnownBuckets,
  tries: Tries,
): Map<string, Table> {
  const columns = new Map<string, Rules>()
  const merged = new Map<Rules, Map<Rules, Rules>>()
  for (const { file, document } of projectLimitsIn(config)) {
    const terms = termsOf(document, config)
    for (const [i, row] of document.limits.entries()) {
      const rules = new Map<string, BucketRule>()
      for (const [name, quota] of Object.entries(row.quotas)) {
        const source = sourceIn(config, file, ['limits', i, 'quotas', name])
        rules.set(name, bucketRule(name, quota, buckets.get(name), terms, source))
      }
      for (const name of columnsOf(row.for, config.planWords)) {
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
  config: PolicyConfig,
  buckets: KnownBuckets,
  tries: Tries,
  columns: ReadonlyMap<string, Table>,
  faults: Fault[],
): Map<string, Table> {
  const tables = new Map<string, Table>()
  const files = projectLimitsIn(config)
  for (const [i, project] of config.projects.entries()) {
    const names = Object.keys(project.overrides)
    if (names.length === 0) continue
    const row = columns.get(columnName(project.plan, project.environment)) ?? NO_LIMITS
    const rules = new Overlay(row.rules)
    for (const name of names) {
      const path = ['projects', i, 'overrides', name]
      const base = row.rules.get(name)
      const override = project.overrides[name] as QuotaOverride
      const quota = overridden(quotaOf(base?.config), override)
      const fault = overrideFault(name, quota, project)
      if (fault !== undefined) {
        faults.push({ file: config.projectsFile, path, message: fault })
        continue
      }
      const declared = files.find(({ document }) => Object.hasOwn(document.buckets, name))
      const terms = base ?? (declared && termsOf(declared.document, config))
      if (terms === undefined) continue
      const source = sourceIn(config, config.projectsFile, path)
      rules.set(name, bucketRule(name, quota, buckets.get(name), terms, source))
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

/** What a file of project limits says once for all of its rules. */
type Terms = Pick<Rule, 'mode' | 'share' | 'onStoreError'>

function termsOf(
  { mode, enforceFor, onStoreError }: ProjectLimitsPolicy['document'],
  config: PolicyConfig,
): Terms {
  return { mode, share: shareOf(enforceFor, 'projects'), onStoreError: onStoreErrorIn(config, onStoreError) }
}

function bucketRule(
  id: string,
  quota: QuotaEntry,
  bucket: KnownBucket | undefined,
  { mode, share, onStoreError }: Terms,
  source: Source,
): BucketRule {
  return compiledRule({
    id,
    kind: PROJECT_LIMITS,
    mode,
    key: bucket?.key ?? ['project'],
    missing: 'skip',
    onStoreError,
    share,
    config: configOf(quota, bucket),
    source,
  })
}

/**
 * Adds trials and shares. Tables that several columns share stay shared; without trials and shares, all stay the same.
 */
export function rollOut(
  tables: ReadonlyMap<string, Table>,
  tries: Tries,
  config: PolicyConfig,
): ReadonlyMap<string, Table> {
  if (!triesAnything(config)) return tables
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

function triesAnything(config: PolicyConfig): boolean {
  const hasTrial = (quotas: Readonly<Record<string, QuotaOverride>>) =>
    Object.values(quotas).some(quota => quota !== UNLIMITED && quota.trial !== undefined)
  const isTried = ({ document: { enforceFor, limits } }: ProjectLimitsPolicy) =>
    enforceFor !== undefined || limits.some(({ quotas }) => hasTrial(quotas))
  return projectLimitsIn(config).some(isTried) || config.projects.some(({ overrides }) => hasTrial(overrides))
}
