/** Makes trials of quotas, and tables for projects outside a share, from tables in which everything is in force. */
import type { BucketConfig, CountedBucket } from '../../config/words/bucket.js'
import { isInside, ownerOfTrial, trialName } from '../../config/words/share.js'
import { VOLUMETRIC } from '../../config/words/words.js'
import { compiledRule } from '../compiled-rule.js'
import type { Share } from '../types.js'
import type { BucketRule, BucketTries, Table } from './policy.js'

/**
 * The table with its trials, and with the tables for projects outside its shares. The same object if it has neither.
 */
export function rolledOut(
  table: Table,
  triesOf: (rules: ReadonlyMap<string, BucketRule>) => BucketTries,
): Table {
  const trials = trialsOf(table)
  let outside: Table['outside']
  // From the largest share down: a project outside that one is outside all of them.
  for (const percent of sharesOf(table).sort((a, b) => b - a)) {
    const rules = new Map([...table.rules].map(([name, rule]) => [name, reportingFrom(percent, rule)]))
    outside = { percent, table: { rules, buckets: triesOf(rules), trials, outside } }
  }
  return trials === undefined && outside === undefined ? table : { ...table, trials, outside }
}

/** The table that counts for a project. Only the project's id decides, so all its buckets with shares move together. */
export function tableFor(table: Table | undefined, project: string): Table | undefined {
  let found = table
  while (found?.outside !== undefined && !isInside(found.outside.percent, `project:${project}`)) {
    found = found.outside.table
  }
  return found
}

/** The rule with a name in the table: a bucket's own, or that of its trial. */
export function bucketRuleOf(table: Table | undefined, name: string): BucketRule | undefined {
  return table?.rules.get(name) ?? table?.trials?.get(ownerOfTrial(name) ?? '')
}

/** The table and the tables for projects outside its shares. */
export function* variantsOf(table: Table): Generator<Table> {
  for (let next: Table | undefined = table; next !== undefined; next = next.outside?.table) yield next
}

/** The quota that a trial counts by. A trial never leases tokens. */
export function triedQuota(config: BucketConfig): CountedBucket | undefined {
  if ('unlimited' in config || config.trial === undefined) return undefined
  const { trial, algorithm, costs, reserved } = config
  return { algorithm, ...trial, lease: false, ...(costs && { costs }), ...(reserved && { reserved }) }
}

/** The own settings of an endpoint rule. */
export type RuleSettings = Readonly<Record<string, unknown>>

/** The settings of an endpoint rule in force, and those of its trial, which differ in the quota; undefined if it has none. */
export function withTrial(
  kind: string,
  settings: RuleSettings,
): { readonly inForce: RuleSettings; readonly tried?: RuleSettings } {
  const { quota } = settings as { readonly quota?: { readonly trial?: object } }
  if (kind !== VOLUMETRIC || quota?.trial === undefined) return { inForce: settings }
  const { trial, ...own } = quota
  return { inForce: { ...settings, quota: own }, tried: { ...settings, quota: trial } }
}

function trialsOf({ rules }: Table): Map<string, BucketRule> | undefined {
  const trials = new Map<string, BucketRule>()
  for (const [name, rule] of rules) {
    const config = triedQuota(rule.config)
    if (config === undefined) continue
    const trial = {
      ...rule,
      id: trialName(name),
      mode: 'report-only',
      share: undefined,
      waits: undefined,
      config,
    } as const
    trials.set(name, compiledRule(trial))
  }
  return trials.size === 0 ? undefined : trials
}

function sharesOf({ rules }: Table): number[] {
  return [...new Set([...rules.values()].flatMap(({ share }) => share?.percent ?? []))]
}

function reportingFrom(percent: number, rule: BucketRule): BucketRule {
  const isOutside = rule.share !== undefined && rule.share.percent <= percent
  return isOutside ? compiledRule({ ...rule, mode: 'report-only' }) : rule
}

/** The share of an `enforceFor`. */
export function shareOf(percent: number | undefined, of: Share['of']): Share | undefined {
  return percent === undefined ? undefined : { percent, of }
}
