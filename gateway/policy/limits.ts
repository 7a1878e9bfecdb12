/**
 * Compiles rows and overrides into tables of limits: one for each plan and environment, and for each project with
 * overrides.
 */

import type { ProjectLimitsPolicy } from '../../config/types.js'
import type { QuotaOverride } from '../../config/words/quota.js'
import { columnName, columnsOf, UNLIMITED } from '../../config/words/words.js'
import type { KnownBuckets } from './buckets.js'
import { type PolicyConfig, projectLimitsIn, sourceIn } from './documents.js'
import type { Fault } from './fault.js'
import { bucketRule, type NegotiatedLimits, NO_LIMITS, termsOf } from './negotiated.js'
import type { BucketRule, Table } from './policy.js'
import { rolledOut } from './shares-and-trials.js'
import { mergeRules, type Rules, type Tries } from './tries.js'

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

export function compileOverrides(
  config: PolicyConfig,
  negotiated: NegotiatedLimits,
  columns: ReadonlyMap<string, Table>,
  faults: Fault[],
): Map<string, Table> {
  const tables = new Map<string, Table>()
  const file = config.projectsFile
  for (const [i, { id, plan, environment, overrides }] of config.projects.entries()) {
    const column = columnName(plan, environment)
    const row = columns.get(column) ?? NO_LIMITS
    const limits = Object.entries(overrides).flatMap(([bucket, quota]) => {
      const path = ['projects', i, 'overrides', bucket]
      const limit = { bucket, quota, source: sourceIn(config, file, path) }
      const message = negotiated.fault(limit, row, column)
      if (message !== undefined) faults.push({ file, path, message })
      return message === undefined ? limit : []
    })
    if (Object.keys(overrides).length > 0) tables.set(id, negotiated.over(row, limits))
  }
  return tables
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
