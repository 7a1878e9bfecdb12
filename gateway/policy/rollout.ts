/** Trials beside quotas, and tables for the projects outside a share: made of tables in which everything is in force. */
import { isDeepStrictEqual } from 'node:util'
import { bucketOfTrial, isInside, trialName } from '../../config/rollout.js'
import type { Rule } from '../types.js'
import type { Override, Quota, TriedQuota } from './compile.js'
import type { BucketTries, Table } from './policy.js'

/** The table with its trials, and with those of projects outside its shares. Itself where nothing is tried. */
export function rolledOut(table: Table, triesOf: (rules: ReadonlyMap<string, Rule>) => BucketTries): Table {
  const trials = trialsOf(table)
  let outside: Table['outside']
  // From the largest share on: whoever is outside that is outside all of them.
  for (const percent of sharesOf(table).sort((a, b) => b - a)) {
    const rules = new Map([...table.rules].map(([name, rule]) => [name, reportingFrom(percent, rule)]))
    outside = { percent, table: { rules, buckets: triesOf(rules), trials, outside } }
  }
  return trials === undefined && outside === undefined ? table : { ...table, trials, outside }
}

/** The table that counts for a project: all buckets of shares move together, by the project's id alone. */
export function tableFor(table: Table | undefined, project: string): Table | undefined {
  let found = table
  while (found?.outside !== undefined && !isInside(found.outside.percent, `project:${project}`)) {
    found = found.outside.table
  }
  return found
}

/** What counts under a name in the table: a bucket's quota, or its trial. */
export function bucketRuleOf(table: Table | undefined, name: string): Rule | undefined {
  return table?.rules.get(name) ?? table?.trials?.get(bucketOfTrial(name) ?? '')
}

/** The table and those of projects outside its shares. */
export function* variantsOf(table: Table): Generator<Table> {
  for (let next: Table | undefined = table; next !== undefined; next = next.outside?.table) yield next
}

/**
 * The trial of a project with an override: its own, or that of its row as if it were in force, when the override would still
 * stand. Undefined when it would try what is in force.
 */
export function trialUnder({
  tried,
  fixed,
  own,
  quota,
}: {
  /** That of the row. */
  tried: TriedQuota | undefined
  /** What the override says of the quota in force, and of a trial. */
  fixed: Override
  own: Override['trial']
  /** What is in force. */
  quota: Quota
}): TriedQuota | undefined {
  const { burst, sustained, algorithm } = quota
  const present = { burst, sustained, algorithm }
  if (own !== undefined) return { ...present, ...own }
  if (tried === undefined) return undefined
  const { lease: _, ...still } = fixed
  const trial = { ...present, ...tried, ...still }
  return isDeepStrictEqual(trial, present) ? undefined : trial
}

/** What a quota's trial counts by. It never leases: tokens taken ahead would be lost to the project for a mere question. */
export function triedQuota({ trial, algorithm }: Quota): Quota | undefined {
  return trial && { ...trial, algorithm: trial.algorithm ?? algorithm, lease: false }
}

function trialsOf({ rules }: Table): Map<string, Rule> | undefined {
  const trials = new Map<string, Rule>()
  for (const [name, rule] of rules) {
    const config = triedQuota(rule.config as Quota)
    if (config === undefined) continue
    trials.set(name, { ...rule, id: trialName(name), mode: 'report-only', share: undefined, config })
  }
  return trials.size === 0 ? undefined : trials
}

function sharesOf({ rules }: Table): number[] {
  return [...new Set([...rules.values()].flatMap(({ share }) => share?.percent ?? []))]
}

function reportingFrom(percent: number, rule: Rule): Rule {
  const isOutside = rule.share !== undefined && rule.share.percent <= percent
  return isOutside ? { ...rule, mode: 'report-only' } : rule
}
