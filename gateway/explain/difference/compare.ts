/** What differs in effect between two configurations: comments, order and names of files do not count. */

import { bothWords, describeColumns, groupColumns } from '../../../config/checks/columns.js'
import { isProjectLimits } from '../../../config/load.js'
import type { ProjectEntry } from '../../../config/schema/projects.js'
import type { BucketConfig } from '../../../config/words/bucket.js'
import { notifyText } from '../../../config/words/notify.js'
import { trialName } from '../../../config/words/share.js'
import { columnName, pluginConfig } from '../../../config/words/words.js'
import type { Configuration } from '../../configured/load.js'
import type { BucketRule, Table } from '../../policy/policy.js'
import { withTrial } from '../../policy/shares-and-trials.js'
import { costTexts, waitText, windowText } from '../settings.js'
import {
  type Change,
  changedFields,
  changesBy,
  changesOf,
  type FieldChange,
  type FieldValues,
} from './changes.js'
import { type MovedRequests, movedRequests } from './moved.js'
import { settingsOf } from './settings.js'

/** All differences, as plain data. */
export interface PolicyDifference {
  /** Buckets by plan and environment; those that changed alike stand together. */
  readonly limits: readonly LimitsChange[]
  readonly moved: readonly MovedRequests[]
  readonly rules: readonly RuleChange[]
  /** Who is denied or exempt. */
  readonly access: readonly Change[]
  readonly projects: readonly ProjectChange[]
  /** Settings that decide about requests, of gateway.yaml and the words that projects.yaml declares. */
  readonly settings: readonly FieldChange[]
}
export interface RuleChange extends Change {
  /** The new kind, if it changed. */
  readonly kind: string
}

/** Buckets that differ in the same way for some plans and environments. */
export interface LimitsChange {
  /** These plans and environments, in words. */
  readonly for: string
  readonly columns: readonly string[]
  readonly buckets: readonly Change[]
}

export interface ProjectChange extends Change {
  /** What changed in the limits that count for it. */
  readonly buckets: readonly Change[]
  /** The column, if its limits changed because those of its plan and environment did; else null. */
  readonly as: string | null
}

export function compare(before: Configuration, after: Configuration): PolicyDifference {
  return {
    limits: compareLimits(before, after),
    moved: movedRequests(before, after),
    rules: compareRules(before, after),
    access: changesOf(accessOf(before), accessOf(after)),
    projects: compareProjects(before, after),
    settings: changedFields(settingsOf(before, after), settingsOf(after, before)),
  }
}

/** True when nothing differs. */
export function isSame(difference: PolicyDifference): boolean {
  return Object.values(difference).every(list => list.length === 0)
}

/** The buckets that differ, by plan and environment. */
export function compareLimits(before: Configuration, after: Configuration): LimitsChange[] {
  const words = bothWords(before.config.planWords, after.config.planWords)
  // Columns with the same rules share a table.
  const known = new Map<Table | undefined, Map<Table | undefined, string>>()
  const groups = groupColumns(words, column => {
    const [was, is] = [before, after].map(({ compiled }) => compiled.policy.columns.get(column))
    const others = known.get(was) ?? new Map<Table | undefined, string>()
    const text = others.get(is) ?? JSON.stringify(bucketChanges(was, is))
    known.set(was, others.set(is, text))
    return text
  })
  return [...groups]
    .map(([text, columns]) => ({
      for: describeColumns(columns, words),
      columns: [...columns],
      buckets: JSON.parse(text) as Change[],
    }))
    .filter(({ buckets }) => buckets.length > 0)
}

/** What differs between the limits of two tables. */
export function bucketChanges(before: Table | undefined, after: Table | undefined): Change[] {
  return changesBy(bucketsOf(before), bucketsOf(after), changedQuota)
}

function bucketsOf(table: Table | undefined): Map<string, BucketRule> {
  const rules = [...(table?.rules.values() ?? []), ...(table?.trials?.values() ?? [])]
  return new Map(rules.map(rule => [rule.id, rule]))
}

/** Stands for a quota that is not there. */
const NONE = {}
/** Projects share most rules with their columns, so the same two are compared for thousands of projects. */
const compared = new WeakMap<object, WeakMap<object, FieldChange[]>>()

function changedQuota(old?: BucketRule, now?: BucketRule): FieldChange[] {
  const [was, is] = [old ?? NONE, now ?? NONE]
  const known = compared.get(was) ?? new WeakMap<object, FieldChange[]>()
  const fields = known.get(is) ?? changedFields(bucketFields(old), bucketFields(now))
  compared.set(was, known.set(is, fields))
  return fields
}

function bucketFields(rule: BucketRule | undefined): FieldValues {
  if (rule === undefined) return {}
  const { key, config, mode, share, onStoreError, waits } = rule
  const enforceFor = share && { enforceFor: `${share.percent}%` }
  const own = key.includes('client-ip') && { key }
  const wait = waits && { wait: waitText(waits) }
  return { ...quotaFields(config), ...own, mode, ...enforceFor, onStoreError, ...wait }
}

function quotaFields(config: BucketConfig): FieldValues {
  if ('unlimited' in config) return { unlimited: true }
  const { burst, sustained, windows = [], algorithm, lease, notify } = config
  const costs = costTexts(config)
  return {
    ...(burst !== undefined && { burst }),
    ...(sustained !== undefined && { sustained }),
    ...Object.fromEntries(windows.map(window => [`window ${window.name}`, windowText(window)])),
    ...(costs.length > 0 && { costs }),
    ...(notify !== undefined && { notify: notifyText(notify) }),
    algorithm,
    lease,
  }
}

/** The endpoint rules that differ. */
export function compareRules(before: Configuration, after: Configuration): RuleChange[] {
  const [old, now] = [rulesOf(before), rulesOf(after)]
  return changesOf(old, now).map(change => ({
    ...change,
    kind: String((now.get(change.name) ?? old.get(change.name))?.kind),
  }))
}

/** `since` changes nothing about a request. */
function rulesOf({ config }: Configuration): Map<string, FieldValues> {
  const rules = config.policies.flatMap(policy =>
    isProjectLimits(policy) ? [] : policy.document.rules.map(rule => ({ kind: policy.kind, rule })),
  )
  return new Map(
    rules.flatMap(({ kind, rule }): [string, FieldValues][] => {
      const { id, match, key, mode, enforceFor, missing, when, reads } = rule
      const { onStoreError = config.gateway.store.onError } = rule
      const share = enforceFor && { enforceFor: `${enforceFor}%` }
      const narrowed = { ...(when && { when }), ...(reads && { reads }) }
      const { inForce, tried } = withTrial(kind, pluginConfig(rule))
      const values = { kind, match, key, mode, ...share, missing, onStoreError, ...narrowed, ...inForce }
      if (tried === undefined) return [[id, values]]
      return [
        [id, values],
        [trialName(id), { kind, quota: tried.quota }],
      ]
    }),
  )
}

/** `since` changes nothing about a request. */
function accessOf({ config }: Configuration): Map<string, FieldValues> {
  const entries = config.access.flatMap(({ document }) => document.rules)
  return new Map(entries.map(({ id, since: _, ...entry }) => [id, entry]))
}

function compareProjects(before: Configuration, after: Configuration): ProjectChange[] {
  const [olds, nows] = [projectsOf(before), projectsOf(after)]
  const own = new Map(
    changesOf(mapValues(olds, projectFields), mapValues(nows, projectFields)).map(one => [one.name, one]),
  )
  return [...new Set([...olds.keys(), ...nows.keys()])].flatMap((id): ProjectChange[] => {
    const change = own.get(id)
    const [was, is] = [olds.get(id), nows.get(id)]
    if (was === undefined || is === undefined) return change ? [{ ...change, buckets: [], as: null }] : []
    const buckets = bucketChanges(before.compiled.policy.tableOf(was), after.compiled.policy.tableOf(is))
    if (change === undefined && buckets.length === 0) return []
    const column = columnName(is.plan, is.environment)
    const [old, now] = [before, after].map(({ compiled }) => compiled.policy.columns.get(column))
    const isColumns = JSON.stringify(buckets) === JSON.stringify(bucketChanges(old, now))
    const as =
      buckets.length > 0 && isColumns && column === columnName(was.plan, was.environment) ? column : null
    return [{ ...(change ?? { name: id, change: 'changed', fields: [] }), buckets, as }]
  })
}

function projectsOf({ config }: Configuration): Map<string, ProjectEntry> {
  return new Map(config.projects.map(project => [project.id, project]))
}

/** The beginning of a key's hash tells which key it is. */
function projectFields({ plan, environment, hosts, paths, apiKeyHashes }: ProjectEntry): FieldValues {
  const keys = apiKeyHashes.map(hash => `${hash.slice(0, 8)}…`)
  return { plan, environment, hosts, paths, ...(keys.length > 0 && { apiKeyHashes: keys }) }
}

function mapValues<T, R>(map: ReadonlyMap<string, T>, change: (value: T) => R): Map<string, R> {
  return new Map([...map].map(([name, value]) => [name, change(value)]))
}
